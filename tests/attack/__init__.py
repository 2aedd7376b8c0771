"""Attacks on swingbot: each module tries one thing and says what it got.

A module has `NAME`, `WANTED` (what a service that holds prints) and `run(target) -> Result`.
`python -m tests.attack` runs all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is attacked: the web service at `url`, or None for attacks that need none.

    `state` is the state directory of a service on this host.
    """

    url: str | None = None
    state: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an attack got, in words, and whether it was held off."""

    got: str
    held: bool
