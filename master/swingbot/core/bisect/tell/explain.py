"""Explain a belief: influential boots, effect of the next boots.

The engine itself gives all answers. The belief is computed after each boot in order of arrival, and
after hypothetical boots.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.posterior.belief import belief
from swingbot.core.bisect.posterior.step_posterior import entropy
from swingbot.core.bisect.state import Action, Belief, BisectionState, Measure
from swingbot.core.bisect.thresholds import CLEARED_P, Policy
from swingbot.core.model.bisection import Observation

Like = Literal["good", "bad"]
_MOST_BELIEFS: Final = 60  # limit of beliefs computed for `influences`; more boots are grouped


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    """Change of the belief caused by some boots, usually one."""

    boots: tuple[Observation, ...]
    bits: float  # KL(belief after || belief before): change of the belief
    # the likeliest commit and its probability; None: no change is likelier
    before: tuple[int, float] | None
    after: tuple[int, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The belief after `boots` hypothetical boots of a point with the level of one end."""

    idx: int
    like: Like
    boots: int
    leader: tuple[int, float] | None
    own: float  # P(the commit that leads to the point) after these boots


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreads:
    """Noise estimated from the boots so far, relative to their level; None: too few boots."""

    run: float | None
    boots: int  # with more than one run
    boot: float | None
    kernels: int  # with more than one boot


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    action: Action
    belief: Belief
    bits_left: float  # of uncertainty: entropy of the belief
    influences: tuple[Influence, ...]  # the most influential boots, largest first
    what_ifs: tuple[WhatIf, ...]
    spreads: Spreads


def explain(
    state: BisectionState, policy: Policy, order: Sequence[Observation], *, most: int = 5
) -> Explanation:
    """Explain a state; `order` has its observations in the order of arrival."""
    action, current = step(state, policy), belief(state, policy)
    largest = sorted(influences(state, policy, order), key=lambda i: -i.bits)[:most]
    return Explanation(
        action=action,
        belief=current,
        bits_left=entropy(_vector(current)),
        influences=tuple(i for i in largest if i.bits > 1e-3),
        what_ifs=tuple(what_ifs(state, policy, action, current)),
        spreads=spreads(state),
    )


# --- the past -------------------------------------------------------------------------------------


def influences(
    state: BisectionState, policy: Policy, order: Sequence[Observation]
) -> Iterator[Influence]:
    """Yield the change of the belief by each boot, given the boots before it."""
    size = max(1, math.ceil(len(order) / _MOST_BELIEFS))
    before = belief(dataclasses.replace(state, observations=(), in_flight=()), policy)
    for start in range(0, len(order), size):
        seen = tuple(order[: start + size])
        after = belief(dataclasses.replace(state, observations=seen, in_flight=()), policy)
        yield Influence(
            boots=seen[start:],
            bits=moved(before, after),
            before=leader(before),
            after=leader(after),
        )
        before = after


def moved(before: Belief, after: Belief) -> float:
    """Return the KL divergence of the later belief from the earlier one, in bits."""
    p, q = _vector(after), _vector(before)
    return float(
        max(
            0.0,
            np.sum(np.where(p > 0, p * np.log2(np.maximum(p, 1e-300) / np.maximum(q, 1e-12)), 0.0)),
        )
    )


def leader(current: Belief) -> tuple[int, float] | None:
    """Return the most likely commit (the earliest of equals), or None if no change is more
    likely.
    """
    best = max(current.candidates, key=lambda c: (c.probability, -c.idx), default=None)
    return (
        None if best is None or best.probability < current.p_none else (best.idx, best.probability)
    )


def _vector(current: Belief) -> NDArray[np.float64]:
    return np.array([c.probability for c in current.candidates] + [current.p_none])


def spreads(state: BisectionState) -> Spreads:
    """Estimate the noise, pooled over boots and kernels; identical boots give 0, too few give
    None.
    """
    boots = [o.values for o in state.observations if o.values and not o.skip]
    runs = [(_relative(v), len(v) - 1) for v in boots if len(v) > 1]
    of_kernel: dict[tuple[int, int], list[float]] = {}
    for o in state.observations:
        if o.values and not o.skip:
            of_kernel.setdefault((o.idx, o.layout), []).append(fmean(o.values))
    means = [(_relative(v), len(v) - 1) for v in of_kernel.values() if len(v) > 1]
    return Spreads(run=_pooled(runs), boots=len(runs), boot=_pooled(means), kernels=len(means))


def _relative(values: Sequence[float]) -> float:
    """Return the variance in units of the squared mean."""
    return variance(values) / max(abs(fmean(values)), 1e-150) ** 2


def _pooled(parts: Sequence[tuple[float, int]]) -> float | None:
    df = sum(n for _, n in parts)
    return math.sqrt(sum(v * n for v, n in parts) / df) if df else None


# --- hypothetical boots ---------------------------------------------------------------------------


def what_ifs(
    state: BisectionState, policy: Policy, action: Action, current: Belief
) -> Iterator[WhatIf]:
    """Yield both answers of the next boot, and the boots that would clear the main suspect."""
    if current.good_level is None or current.bad_level is None:
        return
    if isinstance(action, Measure) and action.phase != "ends":
        ends = (0, len(state.points) - 1)
        for idx in list(dict.fromkeys(r.idx for r in action.requests if r.idx not in ends))[:2]:
            yield what_if(state, policy, current, idx, "good", 1)
            yield what_if(state, policy, current, idx, "bad", 1)
    best = leader(current)
    if best is not None and best[1] >= policy.suspect and best[0] < len(state.points):
        yield from _clears(state, policy, current, best[0])


def _clears(state: BisectionState, policy: Policy, current: Belief, idx: int) -> Iterator[WhatIf]:
    """Yield the fewest boots with the good level that clear the suspect; nothing if 12 do not."""
    for boots in (1, 2, 3, 4, 6, 8, 12):
        result = what_if(state, policy, current, idx, "good", boots)
        if result.own < CLEARED_P:
            yield result
            return


def what_if(
    state: BisectionState, policy: Policy, current: Belief, idx: int, like: Like, boots: int
) -> WhatIf:
    """Compute the belief after boots of point `idx` with the level of one end.

    On a paired testbox the ends are booted too, at their expected levels.
    """
    levels = {"good": current.good_level or 0.0, "bad": current.bad_level or 0.0}
    runs = max((len(o.values) for o in state.observations), default=1)
    first = 1 + max((o.k for o in state.observations), default=-1)
    boots_of_point = []
    for k in range(first, first + boots):
        at = {idx: levels[like]}
        if state.paired:
            at = {0: levels["good"], len(state.points) - 1: levels["bad"]} | at
        boots_of_point += [
            Observation(idx=i, k=k, values=(level,) * runs, phase="search")
            for i, level in at.items()
        ]
    then = belief(
        dataclasses.replace(
            state, observations=state.observations + tuple(boots_of_point), in_flight=()
        ),
        policy,
    )
    own = next((c.probability for c in then.candidates if c.idx == idx), 0.0)
    return WhatIf(idx=idx, like=like, boots=boots, leader=leader(then), own=own)
