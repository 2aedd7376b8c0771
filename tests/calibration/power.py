"""Power of a comparison beside Welch's t test, on the same boots.

`python -m tests.calibration.power 1500` prints one line for each size as it is measured.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import ttest_ind

from swingbot.core.model.noise import PastBoot
from swingbot.core.plan.noise import estimate, sd_at_most
from swingbot.core.stats.compare import BootRuns, Rule, compare

ALPHA: Final = 0.005
SD: Final = 0.02  # of the boots, and of the mean of the runs of a boot
# (boots a side, effect in sd of a boot mean), so that Welch's test finds 80 to 90 %
SIZES: Final = ((4, 4.4), (6, 2.8), (10, 2.0))


@dataclass(frozen=True, kw_only=True)
class Power:
    comparisons: int
    found: int
    welch: int
    only_found: int  # by us and not by Welch's test
    only_welch: int

    def __str__(self) -> str:
        share = 100.0 / self.comparisons
        return f"{share * self.found:.1f} % (Welch {share * self.welch:.1f} %)"


def power(
    boots: int, runs: int, effect: float, comparisons: int, seed: int = 1, *, kernels: int = 0
) -> Power:
    """Gaussian runs in Gaussian boots, with equal shares of the variance of a boot mean.

    `kernels` of three boots each are in the noise record, which is drawn for every 20th comparison;
    0: no record.
    """
    rng = np.random.default_rng([seed, boots, runs])
    records = np.random.default_rng([seed, boots, runs, kernels])
    known: float | None = None
    change = effect * SD * math.sqrt(2.0)
    found = np.zeros(comparisons, bool)
    welch = np.zeros(comparisons, bool)
    for i in range(comparisons):
        base, head = (
            rng.normal(mean, SD, (boots, 1)) + rng.normal(0.0, SD * math.sqrt(runs), (boots, runs))
            for mean in (0.0, -change)
        )
        sides = [
            [BootRuns(k=k, values=tuple(100.0 * np.exp(row))) for k, row in enumerate(side)]
            for side in (base, head)
        ]
        if kernels and i % 20 == 0:
            known = _limit(records, runs, kernels)
        rule = Rule(better="higher", min_effect_pct=0.0, alpha=ALPHA, sd_at_most=known)
        row = compare(sides[0], sides[1], rule)
        found[i] = row.verdict == "worse"
        levels = [[math.log(sum(boot.values) / runs) for boot in side] for side in sides]
        test = ttest_ind(levels[1], levels[0], equal_var=False)
        welch[i] = test.pvalue < ALPHA and test.statistic < 0.0
    return Power(
        comparisons=comparisons,
        found=int(found.sum()),
        welch=int(welch.sum()),
        only_found=int((found & ~welch).sum()),
        only_welch=int((welch & ~found).sum()),
    )


def _limit(rng: np.random.Generator, runs: int, kernels: int) -> float | None:
    """What the record of so many kernels says of the spread of boots."""
    boots = rng.normal(0.0, SD, (kernels, 3, 1))
    values = np.exp(boots + rng.normal(0.0, SD * math.sqrt(runs), (kernels, 3, runs)))
    return sd_at_most(
        estimate(
            [
                PastBoot(
                    code=str(n), image=str(n), day=str(n), k=k, shared=False, values=tuple(runs_of)
                )
                for n, kernel in enumerate(values.tolist())
                for k, runs_of in enumerate(kernel)
            ]
        )
    )


def main(comparisons: int) -> None:
    for runs in (3, 1):
        for boots, effect in SIZES:
            print(
                f"{boots} boots of {runs} runs a side: {power(boots, runs, effect, comparisons)}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1500)
