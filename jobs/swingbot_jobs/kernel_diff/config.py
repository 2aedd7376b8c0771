"""Differences between two kernel configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from swingbot_jobs import limits

_UNSET: Final = " is not set"
_SHOWN: Final = 300  # characters of a symbol or value; a kernel's own build can write any


def options(text: str) -> dict[str, str]:
    """Return values by symbol of a .config; `n` for symbols that are not set."""
    values: dict[str, str] = {}
    for line in text[: limits.KCONFIG_BYTES].splitlines():
        name, assigned, value = line.partition("=")
        if not assigned and line.startswith("# ") and line.endswith(_UNSET):
            name, assigned, value = line[2 : -len(_UNSET)], "=", "n"
        if assigned and name.startswith("CONFIG_") and name.isidentifier():
            values[name] = value
    return values


def config_difference(base: str, head: str) -> list[dict[str, Any]]:
    """Return symbols whose values differ: [{"symbol", "base", "head"}], by name, those that make no
    difference (`matters`) last.

    None where the configuration lacks the symbol. Long values are cut.
    """
    one, other = options(base), options(head)
    rows = [
        {"symbol": _cut(name), "base": _cut(one.get(name)), "head": _cut(other.get(name))}
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]
    return sorted(rows, key=lambda row: not matters(row))


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}... ({len(text)} characters)"


def matters(row: Mapping[str, Any]) -> bool:
    """Return False for a symbol that is off in one kernel and that the other does not know."""
    return {row["base"], row["head"]} != {None, "n"}


def asked_rows(rows: Sequence[Mapping[str, Any]], asked: str) -> list[Mapping[str, Any]]:
    """Return those of the rows that matter whose symbol is set by `asked`, the text of a
    configuration with its fragments.
    """
    names = options(asked)
    return [row for row in rows if matters(row) and row["symbol"] in names]


def config_lines(rows: Sequence[Mapping[str, Any]], most: int) -> list[str]:
    """Return the rows of `config_difference` as lines for people, at most `most` symbols; none if
    the configurations are equal.
    """
    shown = [row for row in rows if matters(row)]
    lines = [
        f"{row['symbol']}: {row['base'] or 'unknown'} -> {row['head'] or 'unknown'}"
        for row in shown[:most]
    ]
    if len(shown) > most:
        lines.append(f"and {len(shown) - most} more")
    if off := len(rows) - len(shown):
        lines.append(f"{off} off in one kernel and unknown to the other")
    return lines
