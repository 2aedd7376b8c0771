"""What differs between two kernels in the sizes of their objects and symbols, as text. Pure."""

from __future__ import annotations

from typing import Final

from swingbot.core.text.plain import cut
from swingbot_jobs.kernel_diff import KernelRecord, bloat, bloat_text, code_change, of_classes
from swingbot_jobs.kernel_diff.code_change import ChangedObject

SECTIONS: Final = ("text", "data", "bss")
_LISTED: Final = 10  # maximum number of objects, and of symbols


def code_lines(base: KernelRecord, head: KernelRecord) -> list[str]:
    """Return two tables: the objects that differ, and the symbols whose sizes differ; empty if
    nothing does. Raises BadRecord.
    """
    changed = code_change(base, head).objects
    table = bloat(of_classes(base.symbols), of_classes(head.symbols))
    if not changed and not table.rows:
        return []
    objects = [f"{'object':<34}" + "".join(f" {part:>13}" for part in SECTIONS)]
    objects += [
        f"{cut(one.object, 34):<34}" + "".join(_bytes(*sizes) for sizes in _three(one))
        for one in changed[:_LISTED]
    ]
    lines = bloat_text(table).splitlines()
    return [*objects, *lines[: 2 + _LISTED], *lines[2 + _LISTED :][-1:]]


def _three(changed: ChangedObject) -> list[tuple[int, int]]:
    """Return (before, after) of text, data and bss of an object; 0 where it does not exist."""
    base, head = changed.base or {}, changed.head or {}
    return [(base.get(part, 0), head.get(part, 0)) for part in SECTIONS]


def _bytes(before: int, after: int) -> str:
    return f" {after if before == after else f'{before}->{after}':>13}"
