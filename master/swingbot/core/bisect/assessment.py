"""One look at a bisection: its state, and all that follows from it before anything is decided. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from swingbot.core.bisect import gaussian, mixture
from swingbot.core.bisect.evidence import Evidence, gather
from swingbot.core.bisect.posterior import Posterior, in_first_mode, wild_boots
from swingbot.core.bisect.state import Action, BisectionState
from swingbot.core.bisect.thresholds import LAYOUT_SDS, Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.statuses import Phase


@dataclass(frozen=True, slots=True)
class Assessment:
    """One look at a bisection: everything derived from its state."""

    state: BisectionState
    policy: Policy
    ev: Evidence
    post: Posterior | None  # None until both ends have given a value
    root: Assessment | None = None  # the whole range, when this is a part of it
    # of the whole range, by first and last position and prior that there is no step: parts overlap, and each is looked at once
    parts: dict[tuple[int, int, float], Assessment] = field(
        default_factory=dict, repr=False, compare=False
    )
    answers: dict[tuple[int, int, float], Action] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def key(self) -> tuple[int, int, float]:
        """Which part of the whole range this is."""
        first = self.ev.first
        return first, first + self.ev.last, self.policy.prior_no_change

    @property
    def whole(self) -> Assessment:
        """The whole range: what boots and testboxes are counted over, and what a conclusion is about."""
        return self.root or self

    @property
    def used(self) -> int:
        """Boots that the bisection has spent or under way, in whatever part of the range."""
        return self.whole.ev.used

    @property
    def elsewhere(self) -> tuple[WantedBoot, ...]:
        """Boots under way of the rest of the range: they keep testboxes busy."""
        return tuple(p for p in self.whole.ev.pending if p not in self.ev.pending)

    def part(self, low: int, high: int, none: float | None = None) -> Assessment:
        """A stretch of the range as a bisection of its own; its ends have been measured. `none`: prior that there is no step in it."""
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
        """What is believed of the step. Both ends have given a value by now."""
        assert self.post is not None
        return self.post

    @property
    def spread_df(self) -> float:
        """Degrees of freedom behind the spread of a boot: of the boots that were made, and of the noise record."""
        return self.posterior.df + 2.0 * self.state.noise.certainty

    @property
    def layout_matters(self) -> bool:
        """Whether two builds of equal code may differ by a good part of the step: then a claim needs other builds of both commits."""
        if self.post is None or self.ev.layout_cost is None:
            return False
        return LAYOUT_SDS * self.post.sd_layout > abs(self.post.effect)

    @property
    def rebuilds(self) -> bool:
        """Whether a step is believed only after both commits were built in another layout: wherever they can be."""
        if self.policy.edition == 1:
            return self.layout_matters
        return self.ev.layout_cost is not None

    def end_effect(self) -> float:
        """Effect between the ends, from the boots that tested them."""
        means = [
            float(np.mean([np.mean([self.ev.of(v) for v in b.values]) for b in boots]))
            for boots in self.end_boots()
        ]
        return means[1] - means[0]

    def end_boots(self) -> tuple[list[Observation], list[Observation]]:
        """Boots of the good and of the bad end outside confirmation, those left out that look wild; on a paired testbox those with a partner."""
        ev = self.ev
        wild = wild_boots(ev, self.post) if self.post else set()
        boots = in_first_mode(ev, self.post) if self.post else ev.boots
        good, bad = (
            [
                b
                for place, b in zip(ev.places, boots, strict=True)
                if place == p and b.phase != "confirm"
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


def look(state: BisectionState, policy: Policy) -> Assessment:
    ev = gather(state, policy)
    post = _posterior(state, policy, ev) if ev.last > 0 and ev.at(0) and ev.at(ev.last) else None
    return Assessment(state, policy, ev, post)


def _posterior(state: BisectionState, policy: Policy, ev: Evidence) -> Posterior:
    least = ev.threshold(state.min_effect_pct)
    if state.paired:
        return gaussian.posterior(ev, state.noise, policy, min_effect=least)
    return mixture.posterior(ev, state.noise, policy, min_effect=least)


def phases(state: BisectionState) -> list[Phase]:
    return [o.phase for o in state.observations] + [f.phase for f in state.in_flight]


def why_not(case: Assessment, position: int) -> str:
    whole, point = case.ev.position, case.name(position)
    said = [p.skipped for p in case.state.points if whole[p.idx] == whole[point] and p.skipped]
    failed = [o.skip for o in case.state.observations if whole[o.idx] == whole[point] and o.skip]
    return (said or failed or ["no boot gave a value"])[0]
