"""Coverage of the 95 % intervals of a step near the end of a history.

    python -m benchmarks.last_steps [--series 1000] [--seed 1] [--before 38]

Gaussian noise about one level, and a step with 2 to 10 points after it. Of the series of each cell:
the share with the step, the share with only a candidate for it; and of these the share whose range
of places and whose interval of the size contain the truth, the share whose best place is the truth,
the commits in the widest range of places, and other steps.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from swingbot.core.stats.findings import look

SIZES: Final = (-3.0, -10.0, -18.0)  # percent
NOISES: Final = (0.2, 0.4, 1.0)  # percent
AFTER: Final = (2, 3, 4, 6, 10)


@dataclass(slots=True, kw_only=True)
class StepCoverage:
    """Counts of series in one cell."""

    series: int = 0
    steps: int = 0  # with a step whose range of places is near the truth
    candidates: int = 0  # without one, but with a candidate
    placed: int = 0  # of steps and candidates: the range of places contains the truth
    sized: int = 0  # of steps and candidates: the interval of the size contains the truth
    exact: int = 0  # the best place is the truth
    others: int = 0  # other steps
    widest: int = 0  # commits in the widest range of places


def last_step(
    size: float, noise: float, after: int, *, series: int, seed: int, before: int = 38
) -> StepCoverage:
    """Play `series` histories of `before` points and `after` points `size` percent away."""
    rng, cell = np.random.default_rng(seed), StepCoverage()
    for _ in range(series):
        level = np.where(np.arange(before + after) < before, 100.0, 100.0 + size)
        findings = look((level * (1.0 + rng.normal(0.0, noise / 100.0, len(level)))).tolist())
        near = [step for step in findings.changes if step.first - 2 <= before <= step.last + 2]
        cell.series += 1
        cell.others += len(findings.changes) - min(len(near), 1)
        if near:
            cell.steps += 1
        elif findings.candidate is not None:
            cell.candidates += 1
            near = [findings.candidate]
        if near:
            step = min(near, key=lambda step: abs(step.at - before))
            cell.placed += step.first <= before <= step.last
            low, high = step.low_pct, step.high_pct
            cell.sized += low is not None and high is not None and low <= size <= high
            cell.exact += step.at == before
            cell.widest = max(cell.widest, step.last - step.first + 1)
    return cell


def cells() -> Iterator[tuple[float, float, int]]:
    yield from itertools.product(SIZES, NOISES, AFTER)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--series", type=int, default=1000, help="series of each cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--before", type=int, default=38, help="points before the step")
    given = parser.parse_args()
    print("| size | noise | points | step | candidate | place | size | exact | widest | others |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for size, noise, after in cells():
        cell = last_step(
            size, noise, after, series=given.series, seed=given.seed, before=given.before
        )
        shares = " | ".join(
            f"{100.0 * count / max(of, 1):.1f} %"
            for count, of in (
                (cell.steps, cell.series),
                (cell.candidates, cell.series),
                (cell.placed, cell.steps + cell.candidates),
                (cell.sized, cell.steps + cell.candidates),
                (cell.exact, cell.steps + cell.candidates),
            )
        )
        print(
            f"| {size:g} % | {noise:g} % | {after} | {shares} | {cell.widest} | {cell.others} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
