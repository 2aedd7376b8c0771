"""Data that the bisection engine and the store exchange: boots, observations and terms.

The engine requests boots with these types, the store keeps them, and the journal writes their
fields. Points are numbered from 0, the good end of the range; the last is the bad end.
"""

from __future__ import annotations

from dataclasses import dataclass

from swingbot.core.model.noise import NoisePrior
from swingbot.core.model.statuses import Phase
from swingbot_jobs.codec import Sparse
from swingbot_jobs.language.better import Better


@dataclass(frozen=True, slots=True)
class WantedBoot:
    """Boot `k` of point `idx`, requested or under way; each happens once."""

    idx: int
    k: int
    phase: Phase
    layout: int = 0  # build of this commit: 0 is the default, others have a different code layout
    testbox: int = 0  # index in the group

    @property
    def key(self) -> tuple[int, int]:
        """Identify the boot."""
        return self.idx, self.k

    def to_json(self) -> list[int]:
        """Return the form in which journals and pages list requests; the phase is stated
        separately."""
        return [self.idx, self.k, self.layout, self.testbox]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The result of one boot: a value per run, or the reason for having none."""

    idx: int
    k: int
    values: tuple[float, ...]  # the metric's unit; empty: no result for this metric
    skip: str | None = None  # panicked, hung, no result: an outcome, never a vote
    phase: Phase
    layout: int = 0
    testbox: int = 0  # index in the group
    # Time of the boot, in seconds of any one clock; None: not known, and drift is not tested.
    at: float | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Identify the boot."""
        return self.idx, self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionTerms:
    """The initial conditions of a bisection and later permissions by a person.

    Column `policy` of the database.
    """

    unit: str | None = None  # of the metric
    better: Better | None = None  # None: a change has no good direction
    # Noise expected at the beginning; it does not follow later noise records. None: not recorded.
    noise: Sparse[NoisePrior | None] = None
    testboxes: Sparse[
        tuple[str, ...]
    ] = ()  # the group that shares its boots; empty: only its testbox
    max_boots: Sparse[int | None] = None  # in total, and of either end; None: the settings apply
    max_end_boots: Sparse[int | None] = None
    min_effect_pct: Sparse[float | None] = None  # of the tree; None: that of the metric
