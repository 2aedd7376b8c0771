"""The posterior of the step, as both models compute it: `gaussian` for paired boots, `mixture` for
all others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.thresholds import WILD_APART_P, WILD_P
from swingbot.core.model.bisection import Observation
from swingbot.core.stats.modes import fisher_p


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """Levels under each hypothesis: that the step is in one of the gaps between
    neighbouring measured positions, and, last, that there is none.
    """

    at: Indices  # measured positions, ascending
    weight: Floats  # probabilities
    low: Floats  # level before the step, and its variance
    low_var: Floats
    high: Floats  # level behind it
    high_var: Floats


@dataclass(frozen=True, slots=True)
class SlowPath:
    """A path that some runs or boots take, and the step that changes their share, if there is
    one.
    """

    unit: str  # what takes it: run or boot
    taken: tuple[int, ...]  # boot (as in `Evidence.boots`) -> how many of its units take it
    units: tuple[int, ...]
    before: float  # share of the units before it, given that there is one
    behind: float
    offset: float  # median distance of these units from the others, on the effect scale
    change: float  # of the mean by it
    small: float  # P(it changes the mean by less than the minimum effect)
    p: float = 0.0  # P(the step changes the share)
    alone: float = 0.0  # P(the step changes the share and leaves the level of the others)

    @property
    def spread(self) -> float:
        """The sd between units behind the step that the path alone makes, on the effect scale."""
        return abs(self.offset) * math.sqrt(self.behind * (1.0 - self.behind))


@dataclass(frozen=True, slots=True)
class Posterior:
    """`commit` over positions (the commit that leads to it), with `none` they sum to one.

    Effects and variances on the effect scale.
    """

    commit: Floats
    none: float
    none_or_small: float  # no change, or one below the minimum effect
    effect: float  # E[D], given a change
    effect_var: float
    low: float  # level before the step, and its variance
    low_var: float
    high_var: float
    sd_layout: float
    boot_var: float  # of a boot mean
    df: float  # degrees of freedom behind boot_var
    two: float  # P(two steps | data); all else here assumes at most one
    # first and last measured position between the two likeliest steps
    middle: tuple[int, int] | None
    wander: float = 0.0  # P(the testbox itself moved meanwhile)
    # where the model keeps them: unpaired boots of one testbox
    hypotheses: Hypotheses | None = None
    # boot (as in `Evidence.boots`) -> P(it is far off for no reason that a kernel gave)
    wild: tuple[float, ...] = ()
    mode: tuple[float, ...] = ()  # boot -> how far its mode is from the first one; (): one mode
    # boot -> how far it is from the others if there is no step; 0: it is not far off
    far_if_none: tuple[float, ...] = ()
    odd_images: float = 0.0  # P(some images are off by far more than their layout)
    # (P(boots behind the step differ in spread from those before it), by which factor if they do)
    noisier: tuple[float, float] = (0.0, 1.0)
    # P(the level creeps over the range, against steps or none); the rest assumes that it does not
    creep: float = 0.0
    # by how much over the whole range if it does, and the variance of that
    crept: tuple[float, float] = (0.0, 0.0)
    if_even: Floats | None = None  # `commit` if there are none; None: the model has none
    if_odd: Floats | None = None  # `commit` if there are some; None: the model has none
    sd_layout_if_even: float | None = None  # `sd_layout` if there are none; None: the same
    slow_path: SlowPath | None = None  # None: no run is far off the others

    def if_images_are_even(self) -> Floats:
        """`commit`, if no image is off by more than its layout."""
        return self.commit if self.if_even is None else self.if_even

    def layout_if_images_are_even(self) -> float:
        """`sd_layout`, if no image is off by more than its layout."""
        return self.sd_layout if self.sd_layout_if_even is None else self.sd_layout_if_even

    def behind(self) -> Floats:
        """Position -> P(step at or before it | there is one)."""
        return np.cumsum(self.commit) / max(1.0 - self.none, 1e-300)


def wild_boots(ev: Evidence, post: Posterior) -> set[tuple[int, int]]:
    """(position, k) of boots that are rather wild than not; none where the model has no wild
    boots.
    """
    return {ev.key(b) for b, p in zip(ev.boots, post.wild, strict=False) if p > WILD_P}


def wild_on_both_sides(ev: Evidence, post: Posterior) -> set[tuple[int, int]]:
    """`wild_boots`, but none where those before the step and those behind it differ in their share:
    such boots belong to the kernel.
    """
    wild = wild_boots(ev, post)
    behind = post.behind()[list(ev.boot_positions)] > 0.5
    odd = np.array([ev.key(b) in wild for b in ev.boots])
    many = [int((odd & (behind == side)).sum()) for side in (False, True)]
    p = fisher_p(many, [int((~behind).sum()), int(behind.sum())])
    return set() if p < WILD_APART_P else wild


def in_first_mode(ev: Evidence, post: Posterior) -> Sequence[Observation]:
    """The boots with those of the second mode moved onto the first."""
    if not any(post.mode):
        return ev.boots
    return [
        replace(b, values=tuple(ev.moved(v, -off) for v in b.values)) if off else b
        for b, off in zip(ev.boots, post.mode, strict=True)
    ]


def blend(still: Posterior, moving: Posterior, wander: float) -> Posterior:
    """Two models of the same boots, the second with probability `wander`."""
    mean = (1 - wander) * still.effect + wander * moving.effect

    def mixed(name: str) -> float:
        return (1 - wander) * float(getattr(still, name)) + wander * float(getattr(moving, name))

    surer = still if wander < 0.5 else moving
    return replace(
        surer,
        commit=(1 - wander) * still.commit + wander * moving.commit,
        none=mixed("none"),
        none_or_small=mixed("none_or_small"),
        effect=mean,
        effect_var=mixed("effect_var")
        + (1 - wander) * (still.effect - mean) ** 2
        + wander * (moving.effect - mean) ** 2,
        low_var=mixed("low_var"),
        high_var=mixed("high_var"),
        two=mixed("two"),
        creep=(1 - wander) * still.creep,
        crept=still.crept,
        odd_images=(1 - wander) * still.odd_images,
        if_even=(1 - wander) * still.if_images_are_even() + wander * moving.if_images_are_even(),
        if_odd=None
        if still.if_odd is None
        else (1 - wander) * still.if_odd + wander * moving.if_images_are_even(),
        noisier=((1 - wander) * still.noisier[0], still.noisier[1]),
        wander=wander,
        wild=still.wild,
        mode=still.mode,
        far_if_none=still.far_if_none,
        hypotheses=still.hypotheses,
    )


def entropy(p: Floats) -> float:
    """Bits that are open."""
    return float(-np.sum(np.where(p > 0, p * np.log2(np.maximum(p, 1e-300)), 0.0)))
