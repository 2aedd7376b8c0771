"""Select kernels to build in advance: those that the next results will probably require."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from swingbot.core.bisect.state import Belief, BisectionState, PointState
from swingbot.core.bisect.thresholds import NO_BUILDS_AHEAD

# Quantiles of the next points: the middle now, and the middle of either half after that.
QUANTILES: Final = (0.5, 0.25, 0.75)
# In a group of testboxes, many results arrive at once, so that later kernels are needed soon.
OF_GROUP: Final = (*(i / 8 for i in (1, 3, 5, 7)), *(i / 16 for i in range(1, 16, 2)))


def likely_next(state: BisectionState, belief: Belief, most: int) -> list[int]:
    """Return up to `most` unbuilt points that split the belief at its quantiles, likeliest first.

    A quantile whose point is built, being built or unmeasurable gives no point: the search would
    not choose a neighbour instead.
    """
    mass = [candidate.probability for candidate in belief.candidates]
    total = sum(mass)
    if total <= 0 or max(mass) >= NO_BUILDS_AHEAD * total:
        return []
    # P(the culprit is commit 1..i), given that there is one
    under = [0.0, *(share / total for share in accumulate(mass))]
    points = (
        min(range(1, len(under) - 1), key=lambda idx: (abs(under[idx] - quantile), idx), default=0)
        for quantile in (*QUANTILES, *(OF_GROUP if state.testboxes > 1 else ()))
    )
    asked = {flight.idx for flight in state.in_flight}
    return [
        idx
        for idx in dict.fromkeys(points)
        if idx and idx not in asked and _unbuilt(state.points[idx])
    ][:most]


def _unbuilt(point: PointState) -> bool:
    return not point.built and point.skipped is None and point.same_as is None


def builds_ahead(state: BisectionState, belief: Belief, most: int) -> list[int]:
    """Return those of `likely_next` that can be built before the boots in flight complete.

    A speculative build must not delay one that was requested.
    """
    available = len(state.in_flight) * state.boot_cost_seconds
    chosen = []
    for idx in likely_next(state, belief, most):
        available -= state.points[idx].build_cost_seconds
        if available < 0:
            break
        chosen.append(idx)
    return chosen
