"""Does the commit change built code at all: which functions, by how much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.proof.gates import GateResult
from swingbot_jobs.kernel_diff import ChangedSymbol, CodeChange

_NAMED: Final = 3  # functions in the reason
_KEPT: Final = 200  # in the detail


def told(change: CodeChange) -> GateResult:
    """Passed if a function or a variable differs; a commit that changes neither can only have moved the rest about."""
    detail = {
        "functions": [_row(one) for one in change.functions[:_KEPT]],
        "data": [_row(one) for one in change.data[:_KEPT]],
        "functions_total": len(change.functions),
        "data_total": len(change.data),
    }
    if change.nothing:
        return GateResult(
            status="fail", reason="no function and no variable of the kernel differs", detail=detail
        )
    found = by_size(change.functions) or by_size(change.data)
    word = "function" if change.functions else "variable"
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return GateResult(
        status="pass",
        reason=f"{len(found)} {word}{'s' * (len(found) != 1)}: {', '.join(map(words, found[:_NAMED]))}{more}",
        detail=detail,
    )


def by_size(changes: Sequence[ChangedSymbol]) -> list[ChangedSymbol]:
    """The largest difference of size first, then by name."""
    return sorted(
        changes, key=lambda one: (-abs((one.head or 0) - (one.base or 0)), one.name, one.object)
    )


def words(one: ChangedSymbol) -> str:
    """`free_unref_page 276 to 269 bytes`."""
    if one.base is None or one.head is None:
        return f"{one.name} {'new' if one.base is None else 'gone'}, {one.head if one.base is None else one.base} bytes"
    return (
        f"{one.name} {one.base} bytes as before"
        if one.base == one.head
        else f"{one.name} {one.base} to {one.head} bytes"
    )


def _row(one: ChangedSymbol) -> dict[str, object]:
    return {
        "name": one.name,
        "object": one.object,
        "kind": one.kind,
        "base": one.base,
        "head": one.head,
        "what": list(one.what),
    }
