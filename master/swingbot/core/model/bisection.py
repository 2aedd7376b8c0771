"""A bisection between engine and store: its boots as they are asked for, what came of them, and the terms it was begun with.

These types go all the way: the engine asks with them, the store keeps them, the journal writes their fields. Numbers of points: 0 is
the good end of the range, the last is the bad one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swingbot.core.model.noise import NoisePrior
from swingbot.core.model.statuses import Phase
from swingbot_jobs.language.program import Better


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionTerms:
    """What a bisection was begun with, and what a person has allowed it since. Column `policy` of the database."""

    unit: str | None = None  # of the metric
    better: Better | None = None  # None: a change has no good direction
    # The noise that was expected when it began; it stays, whatever the record learns meanwhile. None: it began before that was noted.
    noise: NoisePrior | None = None
    testboxes: tuple[str, ...] = ()  # the group that shares its boots; empty: its testbox alone
    max_boots: int | None = None  # in all, and of either end; None: as the settings say
    max_end_boots: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is stored; what is not there is left out, but for unit and direction."""
        known: dict[str, Any] = {"unit": self.unit, "better": self.better}
        if self.noise is not None:
            known["noise"] = self.noise.to_json()
        if self.testboxes:
            known["testboxes"] = list(self.testboxes)
        limits = {"max_boots": self.max_boots, "max_end_boots": self.max_end_boots}
        return known | {name: boots for name, boots in limits.items() if boots is not None}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> BisectionTerms:
        """The inverse; keys may be missing, those that are not known are left out. Raises TypeError for noise that is none."""
        noise = given.get("noise")
        return cls(
            unit=given.get("unit"),
            better=given.get("better"),
            noise=NoisePrior(**noise) if noise else None,
            testboxes=tuple(given.get("testboxes", ())),
            max_boots=given.get("max_boots"),
            max_end_boots=given.get("max_end_boots"),
        )
