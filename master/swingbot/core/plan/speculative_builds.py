"""Which kernels to build before anyone asked for them: those that the next answers will probably ask for."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from swingbot.core.bisect.state import Belief, BisectionState, PointState

# Where the search looks next: in the middle now, and in the middle of either half once the boot in flight has answered.
QUANTILES: Final = (0.5, 0.25, 0.75)
# In a group of testboxes so many answers come at once that the kernels behind them are needed as soon.
OF_GROUP: Final = (*(i / 8 for i in (1, 3, 5, 7)), *(i / 16 for i in range(1, 16, 2)))
# Above this, the leader is confirmed with kernels that are there already.
SETTLED: Final = 0.9


def likely_next(state: BisectionState, belief: Belief, most: int) -> list[int]:
    """Up to `most` points whose kernels are not built, likeliest first: those that split the belief at its quantiles.

    A quantile whose point is built, on its way, or cannot be measured asks for nothing: another one would not be asked for either.
    """
    mass = [candidate.probability for candidate in belief.candidates]
    total = sum(mass)
    if total <= 0 or max(mass) >= SETTLED * total:
        return []
    # P(the culprit is commit 1..i), given that there is one
    under = [0.0, *(share / total for share in accumulate(mass))]
    found = (
        min(range(1, len(under) - 1), key=lambda idx: (abs(under[idx] - quantile), idx), default=0)
        for quantile in (*QUANTILES, *(OF_GROUP if state.boxes > 1 else ()))
    )
    asked = {flight.idx for flight in state.in_flight}
    return [
        idx
        for idx in dict.fromkeys(found)
        if idx and idx not in asked and _unbuilt(state.points[idx])
    ][:most]


def _unbuilt(point: PointState) -> bool:
    return not point.built and point.skipped is None and point.same_as is None


def builds_ahead(state: BisectionState, belief: Belief, most: int) -> list[int]:
    """As `likely_next`, but only what will be built before the boots in flight have answered: a build that nobody asked for delays none that is."""
    left = len(state.in_flight) * state.boot_cost_seconds
    chosen = []
    for idx in likely_next(state, belief, most):
        left -= state.points[idx].build_cost_seconds
        if left < 0:
            break
        chosen.append(idx)
    return chosen
