"""Gate `code`: which functions and variables the commit changes in the built kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.proof.gates import GateResult
from swingbot_jobs.kernel_diff import ChangedSymbol, CodeChange

_NAMED: Final = 3  # functions named in the reason
_KEPT: Final = 200  # functions listed in the detail


def gate_result(change: CodeChange) -> GateResult:
    """Pass if a function or a variable differs.

    A commit that changes neither can affect a number only through the placement of code in memory.
    """
    detail = {
        "functions": [_row(one) for one in change.functions[:_KEPT]],
        "data": [_row(one) for one in change.data[:_KEPT]],
        "functions_total": len(change.functions),
        "data_total": len(change.data),
    }
    if change.nothing:
        return GateResult(
            status="fail", reason="no function or variable of the kernel differs", detail=detail
        )
    changed = by_size(change.functions) or by_size(change.data)
    word = "function" if change.functions else "variable"
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return GateResult(
        status="pass",
        reason=(
            f"{len(changed)} {word}{'s' * (len(changed) != 1)}:"
            f" {', '.join(map(words, changed[:_NAMED]))}{more}"
        ),
        detail=detail,
    )


def by_size(changes: Sequence[ChangedSymbol]) -> list[ChangedSymbol]:
    """Sort by difference in size, largest first, then by name."""
    return sorted(
        changes, key=lambda one: (-abs((one.head or 0) - (one.base or 0)), one.name, one.object)
    )


def words(one: ChangedSymbol) -> str:
    """Describe a changed symbol: `free_unref_page 276 to 269 bytes`."""
    if one.base is None or one.head is None:
        return (
            f"{one.name} {'new' if one.base is None else 'removed'},"
            f" {one.head if one.base is None else one.base} bytes"
        )
    return (
        f"{one.name} {one.base} bytes, size unchanged"
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
