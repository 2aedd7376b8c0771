"""The effect of a commit on the built kernel, as facts and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swingbot_jobs.kernel_diff.bloat import bloat, of_classes
from swingbot_jobs.kernel_diff.code_change import ChangedSymbol, CodeChange, code_change
from swingbot_jobs.kernel_diff.config import config_difference, config_lines
from swingbot_jobs.kernel_diff.record import KernelRecord

# Shown together with sizes of vmlinux.
SIZE_NOTE = (
    "vmlinux is laid out in pages and its functions in steps of 16 bytes:"
    " a change of code often leaves these sizes as they are. The table by symbol shows it."
)
# Two versions of Linux differ in tens of thousands of symbols; omitted rows are counted.
MOST_ROWS = 2000
_WIDTH = 78  # columns of a terminal and of a mail


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedBuild:
    """One build: its record, and its configuration if stored."""

    record: KernelRecord
    config: str | None


def kernel_change(base: ComparedBuild, head: ComparedBuild) -> dict[str, Any]:
    """Return all differences as plain facts for JSON, pages and text. Raises BadRecord.

    Keys: `nothing` (no function and no variable differs), `sizes` {base, head, note}, `functions`,
    `data`, `renamed`, `objects`, `bloat` (all symbols) and `left_out` (rows beyond the most that
    are listed), `compiler` {base, head}, `flags`, `config`.
    """
    change = code_change(base.record, head.record)
    table = bloat(of_classes(base.record.symbols), of_classes(head.record.symbols))
    lists: dict[str, Sequence[Any]] = {
        "functions": [asdict(one) for one in by_size(change.functions)],
        "data": [asdict(one) for one in by_size(change.data)],
        "renamed": [asdict(one) for one in change.renamed],
        "objects": [asdict(one) for one in change.objects],
    }
    facts: dict[str, Any] = {name: rows[:MOST_ROWS] for name, rows in lists.items()}
    of_table = table.to_json()
    left_out = {
        name: len(rows) - MOST_ROWS
        for name, rows in (*lists.items(), ("bloat", of_table["rows"]))
        if len(rows) > MOST_ROWS
    }
    return facts | {
        "nothing": change.nothing,
        "counts": counts(change),
        "left_out": left_out,
        "bloat": of_table | {"rows": _ends(of_table["rows"])},
        "sizes": {
            "base": dict(base.record.sizes),
            "head": dict(head.record.sizes),
            "note": SIZE_NOTE,
        },
        "compiler": {"base": base.record.compiler, "head": head.record.compiler},
        "flags": _flags(base.record.flags, head.record.flags),
        "config": None
        if base.config is None or head.config is None
        else config_difference(base.config, head.config),
    }


def counts(change: CodeChange) -> dict[str, dict[str, int]]:
    """Return the number of functions and variables that are changed, new and gone."""
    return {
        name: {kind: sum(one.kind == kind for one in rows) for kind in ("changed", "new", "gone")}
        for name, rows in _both(change)
    }


def by_size(changes: Iterable[ChangedSymbol]) -> list[ChangedSymbol]:
    """Return `changes` sorted: the largest size differences first, then by name."""
    return sorted(
        changes, key=lambda one: (-abs((one.head or 0) - (one.base or 0)), one.name, one.object)
    )


def change_text(facts: Mapping[str, Any], most: int = 40) -> str:
    """Return the facts of `kernel_change` as text for a terminal, at most `most` rows per table."""
    parts = [
        "\n".join(_headline(facts)),
        _changed_table(facts, most),
        _bloat_part(facts, most),
        _objects_part(facts, most),
        "\n".join(_tools(facts)),
    ]
    return "\n\n".join(part for part in parts if part)


def headline(facts: Mapping[str, Any]) -> str:
    """Return one sentence: whether the change reaches the built code, and where."""
    if facts["nothing"]:
        return "No function and no variable of the kernel differs."
    words = [
        _counted(facts["counts"]["functions"], "function"),
        _counted(facts["counts"]["data"], "variable"),
    ]
    return "; ".join(word for word in words if word) + "."


def _headline(facts: Mapping[str, Any]) -> list[str]:
    lines = [headline(facts)]
    if facts["renamed"]:
        pairs = ", ".join(f"{one['was']} -> {one['name']}" for one in facts["renamed"][:6])
        lines.append(
            "The same code under another name or in another file:"
            f" {pairs}{' ...' if len(facts['renamed']) > 6 else ''}"
        )
    return lines


def _both(change: CodeChange) -> tuple[tuple[str, tuple[ChangedSymbol, ...]], ...]:
    return (("functions", change.functions), ("data", change.data))


def _counted(of: Mapping[str, int], word: str) -> str:
    """Return text such as `2 functions changed, 1 new`; empty if there are none."""
    present = [(of[kind], kind) for kind in ("changed", "new", "gone") if of[kind]]
    first = [f"{number} {word}{'s' if number != 1 else ''} {kind}" for number, kind in present[:1]]
    return ", ".join(first + [f"{number} {kind}" for number, kind in present[1:]])


def _changed_table(facts: Mapping[str, Any], most: int) -> str:
    rows = [*facts["functions"], *facts["data"]]
    if not rows:
        return ""
    body = [
        (one["name"], one["object"], _size(one["base"]), _size(one["head"]), _what(one))
        for one in rows[:most]
    ]
    return _grid([("differs", "object", "base", "head", "what"), *body]) + _more(len(rows), most)


def _what(one: Mapping[str, Any]) -> str:
    words = str(one["kind"]) if one["kind"] != "changed" else ", ".join(one["what"])
    parts = [
        f"now {', '.join(one['now_uses'][:4])}" if one["now_uses"] else "",
        f"no more {', '.join(one['used'][:4])}" if one["used"] else "",
    ]
    return "; ".join(word for word in (words, *parts) if word)


def _bloat_part(facts: Mapping[str, Any], most: int) -> str:
    table = facts["bloat"]
    if not table["rows"]:
        return "No symbol of vmlinux changed its size."
    rows = table["rows"]
    shown = rows if len(rows) <= most else [*rows[: most // 2], *rows[-(most // 2) :]]
    lines = [_bloat_head(table)]
    lines += [
        f"{row['name']:<40} {_size(row['base']):>7} {_size(row['head']):>7} {row['delta']:>+7d}"
        for row in shown
    ]
    lines.append(_bloat_total(table))
    return "\n".join(lines) + (
        f"\n(the largest of {table['new'] + table['gone'] + table['grown'] + table['shrunk']} rows)"
        if len(shown) < len(rows)
        else ""
    )


def _bloat_head(table: Mapping[str, Any]) -> str:
    total = table["up"] + table["down"]
    first = (
        f"add/remove: {table['new']}/{table['gone']} grow/shrink:"
        f" {table['grown']}/{table['shrunk']} up/down: {table['up']}/{table['down']} ({total})"
    )
    return f"{first}\n{'Symbol':<40} {'old':>7} {'new':>7} {'delta':>7}"


def _bloat_total(table: Mapping[str, Any]) -> str:
    change = (
        (table["after"] - table["before"]) * 100.0 / table["before"] if table["before"] else 0.0
    )
    return f"Total: Before={table['before']}, After={table['after']}, chg {change:+.2f}%"


def _objects_part(facts: Mapping[str, Any], most: int) -> str:
    rows = [
        ("size", "text", "data", "bss"),
        *_sizes("vmlinux", facts["sizes"]["base"], facts["sizes"]["head"]),
    ]
    for one in facts["objects"][:most]:
        rows += _sizes(one["object"], one["base"], one["head"])
    note = textwrap.fill(facts["sizes"]["note"], _WIDTH)
    return f"{_grid(rows)}{_more(len(facts['objects']), most)}\n{note}"


def _sizes(
    name: str, base: Mapping[str, int] | None, head: Mapping[str, int] | None
) -> list[tuple[str, ...]]:
    """Return two lines, base and head, or one if they are equal."""
    names = ("text", "data", "bss")
    sides = [
        tuple("-" if side is None else str(side[word]) for word in names) for side in (base, head)
    ]
    return (
        [(name, *sides[0])]
        if sides[0] == sides[1]
        else [(f"{name} base", *sides[0]), (f"{name} head", *sides[1])]
    )


def _tools(facts: Mapping[str, Any]) -> list[str]:
    compiler, flags, config = facts["compiler"], facts["flags"], facts["config"]
    same = compiler["base"] == compiler["head"]
    lines = [
        f"compiler: {compiler['head']}, the same on both sides"
        if same
        else f"compiler: base {compiler['base']}, head {compiler['head']}"
    ]
    different = flags["base_only"] or flags["head_only"]
    lines.append(
        (
            f"flags: base {' '.join(flags['base_only']) or '-'},"
            f" head {' '.join(flags['head_only']) or '-'}"
        )
        if different
        else "flags: the same"
    )
    if config is None:
        return [*lines, "config: not stored for both sides"]
    return [*lines, *config_part(config)]


def config_part(config: Sequence[Mapping[str, Any]], most: int = 40) -> list[str]:
    """Return the lines about the configurations of two kernels; `config`: `config_difference`."""
    if not config:
        return ["config: the same"]
    differ = f"{len(config)} symbol{'s differ' if len(config) != 1 else ' differs'}"
    return [f"config: {differ}", *(f"  {line}" for line in config_lines(config, most))]


def _flags(base: Sequence[str], head: Sequence[str]) -> dict[str, list[str]]:
    of_base, of_head = frozenset(base), frozenset(head)
    return {
        "base_only": [flag for flag in base if flag not in of_head],
        "head_only": [flag for flag in head if flag not in of_base],
        "both": [flag for flag in head if flag in of_base],
    }


def _ends(rows: list[Any]) -> list[Any]:
    """Return the largest changes in both directions."""
    return rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS // 2], *rows[-(MOST_ROWS // 2) :]]


def _size(size: int | None) -> str:
    return "-" if size is None else str(size)


def _more(rows: int, most: int) -> str:
    return f"\n(and {rows - most} more)" if rows > most else ""


def _grid(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
