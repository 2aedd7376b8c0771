"""Does the interval hold over layouts? Twenty builds of one pair of kernels, judged with the noise
record that rebuilds of other kernels left.

`python -m tests.calibration.test_layout_intervals 500` prints the table.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.noise import NoiseRecord, PastBoot
from swingbot.core.plan.metric_rules import metric_of, rule_of
from swingbot.core.plan.noise import estimate
from swingbot.core.stats.compare import BootRuns, compare
from swingbot.core.thresholds import SPREAD_FLOOR
from tests.builders import METRIC
from tests.contract.store.world import a_job, a_testbox
from tests.programs import PROGRAMS

LAYOUTS = 20
BOOTS = 3
PAIR = 1.6e-5  # what two boots with one k differ by on vm-icount
CHANGE = math.log1p(0.003)
TESTBOX = a_testbox(repeatable=True)


def _boots(rng: np.random.Generator, level: float, shifts: list[float]) -> list[tuple[float, ...]]:
    return [(1e5 * math.exp(level + shift + rng.normal(0.0, PAIR)),) for shift in shifts]


def record(rng: np.random.Generator, layout: float, codes: int, layouts: int) -> NoiseRecord:
    """The record that `layouts` builds of each of `codes` kernels leave, beside ten others."""
    shifts = list(rng.normal(0.0, 1e-3, BOOTS))
    past = []
    for code in range(codes + 10):
        for build in range(layouts if code < codes else 1):
            level = rng.normal(0.0, layout)
            for k, values in enumerate(_boots(rng, 0.3 * code + level, shifts)):
                name = f"c{code}"
                image = f"{name}/{build}"
                past.append(
                    PastBoot(code=name, image=image, day="d", k=k, shared=True, values=values)
                )
    return estimate(past, paired=True)


def rows(
    rng: np.random.Generator, layout: float, known: NoiseRecord | None
) -> Iterator[ComparisonRow]:
    """The rows of one pair in twenty layouts, with a minimum effect below the program's."""
    rule = rule_of(TESTBOX, metric_of(PROGRAMS, METRIC), a_job(), known, min_effect_pct=0.2)
    for _ in range(LAYOUTS):
        shifts = list(rng.normal(0.0, 1e-3, BOOTS))
        base, head = (
            [
                BootRuns(k=k, values=values)
                for k, values in enumerate(_boots(rng, level + rng.normal(0.0, layout), shifts))
            ]
            for level in (0.0, CHANGE)
        )
        yield compare(base, head, rule)


def held(row: ComparisonRow) -> bool:
    assert row.interval_pct is not None
    low, high = row.interval_pct
    return low <= 100 * math.expm1(CHANGE) <= high


def worlds(
    seed: int, number: int, layout: float, codes: int, layouts: int
) -> list[tuple[ComparisonRow, ComparisonRow]]:
    """Rows with the record, and without."""
    pairs = []
    for world in range(number):
        rng = np.random.default_rng([seed, world])
        known = record(rng, layout, codes, layouts)
        state = rng.bit_generator.state
        with_record = list(rows(rng, layout, known))
        rng.bit_generator.state = state
        pairs += list(zip(with_record, rows(rng, layout, None), strict=True))
    return pairs


CASES = [
    pytest.param(2e-5, 5, 4, id="layouts hardly differ"),
    pytest.param(2e-4, 2, 3, id="few rebuilds"),
    pytest.param(2e-4, 5, 4, id="many rebuilds"),
    pytest.param(1.2e-3, 5, 4, id="layouts differ by more than is assumed"),
]


@pytest.mark.parametrize(("layout", "codes", "layouts"), CASES)
def test_the_interval_holds_over_twenty_layouts_of_a_pair(
    layout: float, codes: int, layouts: int
) -> None:
    found = worlds(1, 50, layout, codes, layouts)
    assert {row.layout is not None and row.layout.df is not None for row, _ in found} == {True}
    assert np.mean([held(row) for row, _ in found]) >= 0.93
    # nor does it hold by being wide: with a known spread it would be 5.5 of them
    widths = [row.interval_pct[1] - row.interval_pct[0] for row, _ in found if row.interval_pct]
    assert np.median(widths) < 800 * math.hypot(layout, SPREAD_FLOOR)


def test_a_change_below_the_minimum_of_the_program_is_claimed_once_layouts_are_measured() -> None:
    found = worlds(2, 20, 2e-4, 5, 4)
    assert np.mean([row.verdict == "better" for row, _ in found]) > 0.95
    assert {row.verdict for _, row in found} == {"unclear"}
    assert {bool(row.layout and row.layout.assumed) for _, row in found} == {True}


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{'':38}  held with record, width  held without, width  claimed with, without")
    for case in CASES:
        layout, codes, layouts = (float(v) for v in case.values if isinstance(v, int | float))
        found = worlds(3, number, layout, int(codes), int(layouts))
        cells = []
        for side in zip(*found, strict=True):
            widths = [row.interval_pct[1] - row.interval_pct[0] for row in side if row.interval_pct]
            cells.append(f"{np.mean([held(r) for r in side]):.3f}  {np.median(widths):.4f} %")
        claimed = [np.mean([row.changed for row in side]) for side in zip(*found, strict=True)]
        print(f"{case.id or '':38}  {'  '.join(cells)}  {claimed[0]:.2f} {claimed[1]:.2f}")


if __name__ == "__main__":
    main()
