"""Which symbols of a kernel grew and shrank, counted and printed as the kernel's scripts/bloat-o-meter does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# What nm prints for symbols of code, of data that is written, of data that starts as zeros, and of data that is only read.
CLASSES = "tdbr"
# Made by macros and by the build itself: they come and go with every edit.
_GENERATED = ("__mod_", "__se_sys", "__se_compat_sys", "__addressable_")
_STAMPS = ("linux_banner", "vermagic")
_NUMBER = re.compile(r"\.[0-9]+")

Sizes = Mapping[str, int]  # bytes by name


def counted_name(name: str) -> str | None:
    """The name under which a symbol is counted: numbers that a compiler appends are dropped. None: not counted at all."""
    if name.startswith(_GENERATED) or name in _STAMPS:
        return None
    return _NUMBER.sub("", name)


def symbol_table(symbols: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    """Bytes by class (one of CLASSES) and counted name, of (nm's letter, name, bytes).

    Weak symbols and symbols without a size do not count, as with the script.
    """
    table: dict[str, dict[str, int]] = {letter: {} for letter in CLASSES}
    for letter, symbol, size in symbols:
        of_class = table.get(letter.lower())
        name = counted_name(symbol) if of_class is not None and size else None
        if of_class is not None and name is not None:
            of_class[name] = of_class.get(name, 0) + size
    return table


def of_classes(table: Mapping[str, Sizes], classes: str = CLASSES) -> dict[str, int]:
    """Bytes by name over several classes; `t` is what the script's -t counts, `dbr` its -d, all of them its usual table."""
    total: dict[str, int] = {}
    for letter in classes:
        for name, size in table.get(letter, {}).items():
            total[name] = total.get(name, 0) + size
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolGrowth:
    """A symbol whose size differs; None where it is not there."""

    name: str
    base: int | None
    head: int | None

    @property
    def delta(self) -> int:
        return (self.head or 0) - (self.base or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bloat:
    """All sizes in bytes; `rows` from the largest growth to the largest shrinkage."""

    rows: tuple[SymbolGrowth, ...]
    before: int
    after: int

    def count(self, what: str) -> int:
        """How many symbols are `new`, `gone`, `grown` or `shrunk`."""
        return sum(1 for row in self.rows if _what(row) == what)

    @property
    def up(self) -> int:
        return sum(row.delta for row in self.rows if row.delta > 0)

    @property
    def down(self) -> int:
        """Bytes lost, as a negative number."""
        return sum(row.delta for row in self.rows if row.delta < 0)

    def to_json(self) -> dict[str, Any]:
        rows = [
            {
                "name": row.name,
                "base": row.base,
                "head": row.head,
                "delta": row.delta,
                "what": _what(row),
            }
            for row in self.rows
        ]
        counts = {what: self.count(what) for what in ("new", "gone", "grown", "shrunk")}
        return {
            "rows": rows,
            **counts,
            "up": self.up,
            "down": self.down,
            "before": self.before,
            "after": self.after,
        }


def bloat(base: Sizes, head: Sizes) -> Bloat:
    """Compare two tables of sizes."""
    rows = [
        SymbolGrowth(name=name, base=base.get(name), head=head.get(name))
        for name in base.keys() | head.keys()
        if base.get(name) != head.get(name)
    ]
    rows.sort(key=lambda row: (row.delta, row.name), reverse=True)
    return Bloat(rows=tuple(rows), before=sum(base.values()), after=sum(head.values()))


def bloat_text(found: Bloat, title: str = "Function") -> str:
    """The table as the script prints it, character by character."""
    change = (found.after - found.before) * 100.0 / found.before if found.before else 0.0
    lines = [
        f"add/remove: {found.count('new')}/{found.count('gone')} grow/shrink: {found.count('grown')}/{found.count('shrunk')}"
        f" up/down: {found.up}/{found.down} ({found.up + found.down})",
        f"{title:<40} {'old':>7} {'new':>7} {'delta':>7}",
        *(
            f"{row.name:<40} {_cell(row.base):>7} {_cell(row.head):>7} {row.delta:>+7d}"
            for row in found.rows
        ),
        f"Total: Before={found.before}, After={found.after}, chg {change:+.2f}%",
    ]
    return "\n".join(lines) + "\n"


def _what(row: SymbolGrowth) -> str:
    if row.base is None:
        return "new"
    if row.head is None:
        return "gone"
    return "grown" if row.delta > 0 else "shrunk"


def _cell(size: int | None) -> str:
    return "-" if size is None else str(size)
