"""Extras of the package (`pip install 'swingbot[master]'`): which of them are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from typing import Final

# Modules that stand for an extra: one of the extra's packages each, needed by all that uses it.
PROBES: Final[Mapping[str, tuple[str, ...]]] = {
    "master": ("sqlalchemy", "psycopg2", "buildbot", "starlette"),
    "worker": ("buildbot_worker", "httpx", "elftools"),
}


def is_importable(module: str) -> bool:
    """Whether a top-level module is there, without importing it."""
    return importlib.util.find_spec(module) is not None


def missing(
    extras: Iterable[str], importable: Callable[[str], bool] = is_importable
) -> tuple[str, ...]:
    """Those of `extras` that are not installed, or not whole."""
    return tuple(extra for extra in extras if not all(map(importable, PROBES[extra])))


def advice(command: str, lacking: Iterable[str]) -> str:
    """One line: which extras a command needs that are not installed, and how to install them."""
    names = list(lacking)
    quoted = " and ".join(f'"{name}"' for name in names)
    return (
        f"{command} needs the extra{'s' if len(names) > 1 else ''} {quoted}:"
        f" pip install 'swingbot[{','.join(names)}]'"
    )
