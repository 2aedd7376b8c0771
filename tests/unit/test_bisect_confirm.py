"""What fresh boots of a suspect and its parent must show to confirm it."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.bisect.decide.confirm import _agrees
from swingbot.core.bisect.decide.confirmation_boots import ConfirmationBoots, _holds_zero
from swingbot.core.bisect.posterior.assessment import Assessment, assess
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation
from swingbot.core.stats.compare import BootRuns, Rule, compare
from tests.simulate import a_state, bisect_to_the_end, known_noise
from tests.worlds import SimulatedBench


def a_case() -> Assessment:
    """Ends that differ by 5 %."""
    bench = SimulatedBench(commits=8, culprit=4, effect=-0.05, run_noise=0.01, seed=3)
    boots = tuple(
        Observation(idx=idx, k=k, values=bench.boot(idx, k)[0], phase="ends")
        for idx in (0, 8)
        for k in range(4)
    )
    return assess(replace(a_state(bench, noise=known_noise(bench)), observations=boots), Policy())


def fresh(good: tuple[float, ...], bad: tuple[float, ...]) -> ConfirmationBoots:
    sides = [[BootRuns(k=k, values=(v,)) for k, v in enumerate(side)] for side in (good, bad)]
    row = compare(sides[0], sides[1], Rule(alpha=0.05, unimodal=True))
    return ConfirmationBoots(3, 4, len(good), 0, 0, row, not _holds_zero(row))


def test_fresh_boots_whose_interval_contains_zero_confirm_nothing() -> None:
    """A step of several was once called confirmed at -3.89 .. +0.02 %."""
    case = a_case()
    clear = fresh((100.0, 100.4, 100.2, 99.9), (95.0, 95.4, 94.9, 95.2))
    wide = fresh((100.0, 97.0, 101.0, 98.0), (97.0, 95.0, 98.5, 96.0))
    assert clear.row and clear.row.interval_pct and clear.row.interval_pct[1] < 0.0
    assert wide.row and wide.row.interval_pct
    assert wide.row.interval_pct[0] < 0.0 < wide.row.interval_pct[1] and wide.effect < -0.01
    assert _agrees(case, clear)
    assert not _agrees(case, wide)


def test_fresh_boots_in_the_other_direction_confirm_nothing() -> None:
    assert not _agrees(a_case(), fresh((95.0, 95.4, 94.9, 95.2), (100.0, 100.4, 100.2, 99.9)))


def test_a_step_whose_neighbours_the_budget_leaves_out_is_not_said_to_be_denied() -> None:
    bench = SimulatedBench(commits=13, culprit=8, effect=-0.1, seed=3)
    state = replace(a_state(bench), layouts=False)
    whole = bisect_to_the_end(bench, state)
    assert whole.named == 8
    spared = bisect_to_the_end(bench, state, Policy(max_boots=whole.boots - 1)).conclusion
    assert (spared.kind, spared.suspect) == ("inconclusive", 8)
    assert "did not show" not in spared.reason and "differ in" in spared.reason
    assert spared.settled_by is not None and "next to it" in spared.settled_by
