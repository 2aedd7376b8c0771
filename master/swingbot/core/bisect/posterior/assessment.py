"""Everything that follows from the state of a bisection before a decision is made. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from swingbot.core.bisect.evidence.far_runs import far_runs
from swingbot.core.bisect.evidence.range_evidence import Evidence, gather
from swingbot.core.bisect.posterior import gaussian, mixture, slow_path
from swingbot.core.bisect.posterior.step_posterior import Posterior, in_first_mode, wild_boots
from swingbot.core.bisect.state import Action, BisectionState
from swingbot.core.bisect.thresholds import (
    GROUP_BOOTS_PER_END,
    GROUP_DECISIVE,
    GROUP_WORTH,
    LAYOUT_SDS,
    Policy,
)
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import NoisePrior
from swingbot.core.model.statuses import Phase
from swingbot.core.stats.bound import Bound


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything derived from the state of a bisection."""

    state: BisectionState
    policy: Policy
    ev: Evidence
    post: Posterior | None  # None until both ends have given a value
    root: Assessment | None = None  # the whole range, when this is a part of it
    # cached parts of the whole range by first and last position and prior of no step; parts overlap
    parts: dict[tuple[int, int, float], Assessment] = field(
        default_factory=dict, repr=False, compare=False
    )
    answers: dict[tuple[int, int, float], Action] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def key(self) -> tuple[int, int, float]:
        """Identifies this part of the whole range."""
        first = self.ev.first
        return first, first + self.ev.last, self.policy.prior_no_change

    @property
    def whole(self) -> Assessment:
        """The whole range, over which boots and testboxes are counted and a conclusion is drawn."""
        return self.root or self

    @property
    def used(self) -> int:
        """Boots of the bisection, completed or in flight, in all parts of the range."""
        return self.whole.ev.used

    @property
    def elsewhere(self) -> tuple[WantedBoot, ...]:
        """Boots in flight for the rest of the range, which also occupy testboxes."""
        return tuple(p for p in self.whole.ev.pending if p not in self.ev.pending)

    def part(self, low: int, high: int, none: float | None = None) -> Assessment:
        """Return part of the range as a separate bisection; its ends must have been measured.

        `none` is the prior that it has no step.
        """
        policy = self.policy if none is None else replace(self.policy, prior_no_change=none)
        first = self.ev.first
        key = first + low, first + high, policy.prior_no_change
        parts = self.whole.parts
        if key not in parts:
            ev = self.ev.between(low, high)
            parts[key] = Assessment(
                self.state, policy, ev, _posterior(self.state, policy, ev), self.whole
            )
        return parts[key]

    def sides(self) -> tuple[Assessment, Assessment] | None:
        """The stretches up to and from between two steps, if the boots say that there are two."""
        if self.post is None or self.post.middle is None or self.post.two < self.policy.two:
            return None
        first, last = self.post.middle
        return self.part(0, last), self.part(first, self.ev.last)

    @property
    def posterior(self) -> Posterior:
        """The posterior of the step. Both ends must have given a value."""
        assert self.post is not None
        return self.post

    @property
    def spread_df(self) -> float:
        """Degrees of freedom of the spread of a boot, from the boots and the noise record."""
        return self.posterior.df + 2.0 * self.state.noise.certainty

    @property
    def layout_matters(self) -> bool:
        """Whether two builds of equal code may differ by a large part of the step.

        If so, a claim needs other builds of both commits.
        """
        if self.post is None or self.ev.layout_cost is None:
            return False
        return LAYOUT_SDS * self.post.sd_layout > abs(self.post.effect)

    @property
    def rebuilds(self) -> bool:
        """Whether a step must be confirmed by builds of both commits in another layout."""
        return self.ev.layout_cost is not None

    def end_effect(self) -> float:
        """Effect between the ends, from the boots that tested them."""
        means = [
            float(np.mean([np.mean([self.ev.effect(v) for v in b.values]) for b in boots]))
            for boots in self.end_boots()
        ]
        return means[1] - means[0]

    def end_boots(self) -> tuple[list[Observation], list[Observation]]:
        """Boots of both ends, without confirmation boots and wild boots; on a paired testbox, only
        pairs.
        """
        ev = self.ev
        wild = wild_boots(ev, self.post) if self.post else set()
        boots = in_first_mode(ev, self.post) if self.post else ev.boots
        good, bad = (
            [
                b
                for position, b in zip(ev.boot_positions, boots, strict=True)
                if position == p and b.phase != "confirm"
            ]
            for p in (0, ev.last)
        )
        good, bad = ([b for b in end if ev.key(b) not in wild] or end for end in (good, bad))
        common = {b.k for b in good} & {b.k for b in bad}
        if not self.state.paired or not common:
            return good, bad
        return [b for b in good if b.k in common], [b for b in bad if b.k in common]

    def name(self, position: int) -> int:
        return self.ev.points[position]


@lru_cache(maxsize=1)  # a step and the belief that is shown after it assess the same state
def assess(state: BisectionState, policy: Policy) -> Assessment:
    if state.testboxes > 1:
        policy = _in_group(policy, state.testboxes)
    ev = gather(state, policy)
    post = _posterior(state, policy, ev) if ev.last > 0 and ev.at(0) and ev.at(ev.last) else None
    return Assessment(state, policy, ev, post)


def _in_group(policy: Policy, testboxes: int) -> Policy:
    """Adapt the policy to a group, where idle testboxes are free and boots are requested sooner."""
    return replace(
        policy,
        parallel=max(policy.parallel, testboxes),
        boots_per_end=max(policy.boots_per_end, min(testboxes, GROUP_BOOTS_PER_END)),
        decisive=min(policy.decisive, GROUP_DECISIVE),
        worth=min(policy.worth, GROUP_WORTH),
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """All that a posterior depends on. Most boots leave most parts of a range as they were."""

    boots: tuple[Observation, ...]
    positions: tuple[int, ...]
    mass: bytes
    rebuilds: bool
    ratio: bool
    unit: float
    bound: Bound | None
    noise: NoisePrior
    policy: Policy
    paired: bool
    min_effect_pct: float
    ev: Evidence = field(compare=False, repr=False)


def _posterior(state: BisectionState, policy: Policy, ev: Evidence) -> Posterior:
    return _answer(
        _Question(
            boots=ev.boots,
            positions=ev.boot_positions,
            mass=ev.mass.tobytes(),
            rebuilds=ev.layout_cost is not None,
            ratio=ev.ratio,
            unit=ev.unit,
            bound=ev.bound,
            noise=state.noise,
            policy=policy,
            paired=state.paired,
            min_effect_pct=state.min_effect_pct,
            ev=ev,
        )
    )


@lru_cache(maxsize=32)
def _answer(asked: _Question) -> Posterior:
    ev, policy = asked.ev, asked.policy
    least = ev.threshold(asked.min_effect_pct)
    model = gaussian if asked.paired else mixture
    levels = model.posterior(ev, asked.noise, policy, min_effect=least)
    return slow_path.weighed(levels, ev, far_runs(ev, least), policy, least)


def phases(state: BisectionState) -> list[Phase]:
    return [o.phase for o in state.observations] + [f.phase for f in state.in_flight]


def why_not(case: Assessment, position: int) -> str:
    whole, point = case.ev.position, case.name(position)
    said = [p.skipped for p in case.state.points if whole[p.idx] == whole[point] and p.skipped]
    failed = [o.skip for o in case.state.observations if whole[o.idx] == whole[point] and o.skip]
    return (said or failed or ["no boot gave a value"])[0]
