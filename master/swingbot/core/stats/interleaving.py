"""Detect whether the boots of both sides were interleaved.

If the sides ran in blocks, a change of the testbox between them looks like a change of the
kernel. Adjacent boots of one side form a block. If there are fewer blocks than in a random order
(Wald & Wolfowitz, Annals of Mathematical Statistics 11, 1940), blocks are the replicates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from swingbot.core.stats.moments import mean
from swingbot.core.stats.rows import BootRuns
from swingbot.core.thresholds import BLOCKS_P

Sides = tuple[list[BootRuns], list[BootRuns]]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Averages of adjacent boots of each side.

    Each block is one BootRuns, whose `values` are the means of its boots.
    """

    base: list[BootRuns]
    head: list[BootRuns]

    @property
    def note(self) -> str:
        counts = [len(side) for side in (self.base, self.head)]
        if max(counts) < 2:
            return (
                "all boots of one side ran before those of the other, so a change of the testbox"
                " in between looks like a change of the kernel"
            )
        return (
            f"the sides ran in blocks ({counts[0]} of base, {counts[1]} of head), so a block"
            " counts as one boot"
        )


def in_order(base: Sequence[BootRuns], head: Sequence[BootRuns]) -> Sides | None:
    """Return both sides with boots numbered in run order; None if a boot has no time."""
    if not base or not head or any(b.at is None or not math.isfinite(b.at) for b in (*base, *head)):
        return None
    sides = [sorted(side, key=lambda b: (b.at, b.k)) for side in (base, head)]
    return sides[0], sides[1]


def blocks_of(base: Sequence[BootRuns], head: Sequence[BootRuns]) -> Blocks | None:
    """Return the blocks of both sides.

    None if the boots were interleaved, if times are missing, or with one boot on a side.
    """
    ordered = in_order([b for b in base if b.values], [b for b in head if b.values])
    if ordered is None or min(map(len, ordered)) < 2:
        return None
    placed = sorted(
        ((b.at, side, b) for side, boots in enumerate(ordered) for b in boots),
        key=lambda one: one[:2],
    )
    runs = [
        (side, [b for _, _, b in boots])
        for side, boots in itertools.groupby(placed, key=lambda one: one[1])
    ]
    if len(runs) > 2 and few_runs_p(len(ordered[0]), len(ordered[1]), len(runs)) > BLOCKS_P:
        return None
    sides: Sides = ([], [])
    for k, (side, boots) in enumerate(runs):
        sides[side].append(BootRuns(k=k, values=tuple(mean(b.values) for b in boots), at=float(k)))
    return Blocks(*sides)


def few_runs_p(n: int, m: int, runs: int) -> float:
    """Return P that a random order of n and m items has at most `runs` runs of one kind."""
    ways = 0
    for r in range(2, runs + 1):
        half, odd = divmod(r, 2)
        ways += (
            math.comb(n - 1, half) * math.comb(m - 1, half - 1)
            + math.comb(n - 1, half - 1) * math.comb(m - 1, half)
            if odd
            else 2 * math.comb(n - 1, half - 1) * math.comb(m - 1, half - 1)
        )
    return ways / math.comb(n + m, n)
