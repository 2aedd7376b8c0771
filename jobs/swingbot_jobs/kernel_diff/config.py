"""Differences between two kernel configurations."""

from __future__ import annotations

from typing import Any, Final

from swingbot_jobs import limits

_UNSET: Final = " is not set"


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
    """Return symbols whose values differ, by name: [{"symbol", "base", "head"}].

    None where the configuration lacks the symbol.
    """
    one, other = options(base), options(head)
    return [
        {"symbol": name, "base": one.get(name), "head": other.get(name)}
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]
