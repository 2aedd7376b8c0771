"""The boots of a bisection: as they are asked for, and as what came of them.

These two types go all the way: the engine asks with them, the store keeps them, the journal writes their fields. Numbers of points: 0
is the good end of the range, the last is the bad one.
"""

from __future__ import annotations

from dataclasses import dataclass

from swingbot.core.model.statuses import Phase


@dataclass(frozen=True, slots=True)
class WantedBoot:
    """Boot `k` of point `idx`, which happens once: asked for, or under way."""

    idx: int
    k: int
    phase: Phase
    layout: int = (
        0  # which build of this commit: 0 the default, others lay the same code out differently
    )
    box: int = 0  # which testbox of the group, from 0

    @property
    def key(self) -> tuple[int, int]:
        """Which boot it is."""
        return self.idx, self.k

    def to_json(self) -> list[int]:
        """As journals and pages list what a step asks for; they name the phase once for all."""
        return [self.idx, self.k, self.layout, self.box]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one boot told: a value per run, or why it told nothing."""

    idx: int
    k: int
    values: tuple[float, ...]  # the metric's unit; empty: this boot says nothing about the metric
    skip: str | None = None  # panicked, hung, no result: an outcome, never a vote
    phase: Phase
    layout: int = 0
    box: int = 0
    # When it was booted, in seconds of any one clock; None: not known, no drift is looked for.
    at: float | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Which boot it was."""
        return self.idx, self.k
