"""Which lines of a configuration a kernel accepted. Pure; a .config may have been crafted."""

from __future__ import annotations

import re

_SETTING = re.compile(r"^(?:CONFIG_\w+=.+|# CONFIG_\w+ is not set)$", re.MULTILINE)


def lost_lines(fragment: str, config: str) -> list[str]:
    """Return the lines of the fragment that are not in the final config.

    Their symbols are unknown to this kernel, or cannot have this value.
    """
    symbols = {symbol(line) for line in fragment.splitlines() if _sets_something(line)}
    # `config` may have any number of lines
    accepted = {match[0] for match in _SETTING.finditer(config) if symbol(match[0]) in symbols}
    return [
        line
        for line in fragment.splitlines()
        if _sets_something(line)
        and line not in accepted
        and not _absent_as_requested(line, accepted)
    ]


def not_overridden(fragment: str, above: str) -> str:
    """Return the lines of `fragment` whose symbols are not set by `above`."""
    later = {symbol(line) for line in above.splitlines() if _sets_something(line)}
    return "\n".join(
        line
        for line in fragment.splitlines()
        if _sets_something(line) and symbol(line) not in later
    )


def symbol(line: str) -> str:
    """Return the option that a line of a configuration sets, with CONFIG_."""
    return line.split()[1] if line.startswith("#") else line.partition("=")[0]


def _sets_something(line: str) -> bool:
    return bool(re.fullmatch(r"CONFIG_\w+=.+|# CONFIG_\w+ is not set", line))


def _absent_as_requested(line: str, accepted: set[str]) -> bool:
    return line.startswith("#") and not any(
        other.startswith(f"{symbol(line)}=") for other in accepted
    )
