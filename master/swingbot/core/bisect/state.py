"""State, actions and conclusions of a bisection as frozen values. Only observations are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import NoisePrior
from swingbot.core.model.statuses import ConclusionKind, Phase
from swingbot_jobs.codec import Sparse


@dataclass(frozen=True, slots=True, kw_only=True)
class PointState:
    """One kernel of the range. Commit `idx` leads from point `idx - 1` to `idx`."""

    idx: int
    weight: float = 1.0  # prior mass of the commit, any unit; 0 only if it cannot change the image
    build_cost_seconds: float = 0.0  # remaining cost of building it
    built: bool = False
    skipped: str | None = (
        None  # why it can never be measured here: does not build, does not boot, a person said so
    )
    same_as: int | None = (
        None  # image-identical to that point: boots of the one are boots of the other
    )
    # other images of the same level, its layouts 1, 2, ... (an older commit of the good end), where
    # the kernel itself has one build
    controls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionState:
    points: tuple[PointState, ...]  # points[0] is good, the last is bad; points[i].idx == i
    observations: tuple[Observation, ...] = ()
    in_flight: tuple[WantedBoot, ...] = ()
    paired: bool = False  # boot k shifts all kernels of this testbox alike
    better: Literal["higher", "lower"] | None = (
        None  # affects wording only; the model covers both directions
    )
    min_effect_pct: float = 1.0
    noise: NoisePrior = field(default_factory=NoisePrior)
    boot_cost_seconds: float = 10.0  # of one boot with its runs
    # number of testboxes in the group that share the work; their indices count from 0
    testboxes: int = 1
    layouts: bool = False  # whether a commit can be built with another layout of the same code
    layout_cost_seconds: float = 60.0  # of linking a kernel that is built in another layout

    def __post_init__(self) -> None:
        if len(self.points) < 2 or any(p.idx != i for i, p in enumerate(self.points)):
            raise ValueError(
                "a bisection needs points 0..n in order, at least the good and the bad one"
            )
        asked = [o.idx for o in self.observations] + [f.idx for f in self.in_flight]
        bad = sorted({i for i in asked if not 0 <= i < len(self.points)})
        if bad:
            raise ValueError(
                f"observed or requested points outside the range 0..{len(self.points) - 1}: {bad}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Request these boots (at least one, all of one phase) in this order, so base and head
    alternate.
    """

    requests: tuple[WantedBoot, ...]
    why: str

    @property
    def phase(self) -> Phase:
        return self.requests[0].phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Request nothing until a boot in flight completes."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A step confirmed by fresh boots. `parent_idx` is the point that it was compared with."""

    idx: int
    parent_idx: int
    probability: float
    change_pct: float | None
    interval_pct: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateBelief:
    idx: int
    probability: float
    # of point idx; same: the commit does not change the image
    state: Literal["candidate", "measured", "skipped", "same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Result of a bisection that has ended.

    Effect and interval come from confirmation boots only; None where there were none.
    """

    kind: ConclusionKind
    reason: str
    culprits: tuple[Culprit, ...] = ()  # one; or each established one (several); or none
    members: tuple[
        int, ...
    ] = ()  # commits that the conclusion holds to be possible (one for a culprit)
    probability: float | None = None  # of `members` together
    change_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    spread_ratio: float | None = None  # spread between boots, if that is what changed
    # a suspect, not confirmed as far as was asked for: what would settle it
    settled_by: Sparse[str | None] = None
    candidates: tuple[CandidateBelief, ...] = ()

    @property
    def suspect(self) -> int | None:
        """The commit that would have been named if its probability were as high as asked for."""
        single = self.kind == "inconclusive" and len(self.members) == 1
        return self.members[0] if single and self.settled_by is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclude:
    conclusion: Conclusion


Action = Measure | Wait | Conclude


@dataclass(frozen=True, slots=True, kw_only=True)
class PointBelief:
    """Measurements of one point, for pages."""

    idx: int
    boots: int
    runs: int
    failed: int  # boots without a value
    mean: float | None  # of boot means, the metric's unit
    skipped: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """The posterior as pages show it. Probabilities of the candidates and `p_none` sum to one."""

    candidates: tuple[CandidateBelief, ...]  # commits 1..n
    p_none: float
    points: tuple[PointBelief, ...]
    change_pct: float | None  # expected step if there is one, from all boots
    good_level: float | None  # metric's unit
    bad_level: float | None
    phase: Phase
