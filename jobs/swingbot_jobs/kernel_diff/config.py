"""Differences between two kernel configurations."""

from __future__ import annotations

import re
from typing import Any

from swingbot_jobs import limits

_SET = re.compile(r"(CONFIG_\w+)=(.*)")
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")


def options(text: str) -> dict[str, str]:
    """Return values by symbol of a .config; `n` for symbols that are not set."""
    values: dict[str, str] = {}
    for line in text[: limits.KCONFIG_BYTES].splitlines():
        if match := _SET.fullmatch(line):
            values[match[1]] = match[2]
        elif match := _UNSET.fullmatch(line):
            values[match[1]] = "n"
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
