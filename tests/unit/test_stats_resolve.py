"""Rules of planning: what boots can show before any is spent; and published tables that the
percentages have to reproduce."""

from __future__ import annotations

import itertools
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.stats import nct
from scipy.stats import t as student

from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.resolve import KnownNoise, plan_family, power_of

plan_comparison = partial(plan_family, pairs=[(0, 1)])
PUBLISHED = yaml.safe_load((Path(__file__).parents[1] / "golden" / "published.yaml").read_text())


@pytest.mark.parametrize(
    ("cv", "needed"),
    [
        (0.005, [12, 5, 4, 4]),
        (0.01, [42, 12, 4, 4]),
        (0.02, [159, 41, 9, 4]),
        (0.05, [984, 245, 40, 5]),
    ],
)
def test_boots_for_losses_of_1_2_5_and_18_percent_are_those_of_the_noncentral_t(
    cv: float, needed: list[int]
) -> None:
    """Boots a side for 95 % power at p < 0.005: the table that the project started from. A loss
    of p % is the log ratio of a gain of p / (1 - p)."""
    plan = plan_comparison(KnownNoise(run=0.0, boot=cv), 1, 6, False, power=0.95)
    assert [plan.boots_for(100 * loss / (1 - loss)) for loss in (0.01, 0.02, 0.05, 0.18)] == needed


@pytest.mark.parametrize(
    ("boots", "paired"), [(2, False), (6, False), (40, False), (3, True), (9, True)]
)
def test_power_is_the_noncentral_t(boots: int, paired: bool) -> None:
    df = (boots - 1) * (1 if paired else 2)
    wanted = nct.sf(student.isf(0.0025, df), df, 0.03 / (0.02 * math.sqrt(2 / boots)))
    assert power_of(
        boots, 0.03, 0.02, paired=paired, alpha=0.005, df=math.inf, layout=0.0
    ) == pytest.approx(float(wanted), abs=1e-9)


def test_a_plan_resolves_what_it_says() -> None:
    plan = plan_comparison(KnownNoise(run=0.03, boot=0.01), 9, 6, False)
    assert plan.sd == pytest.approx(math.sqrt(2) / 100)
    need = plan.boots_for(plan.resolves_pct * 1.0001)
    assert need == 6
    assert plan.boots_for(plan.resolves_pct * 0.98) == 7


def test_what_is_resolved_is_seen_with_the_stated_probability() -> None:
    rng = np.random.default_rng(8)
    plan = plan_comparison(KnownNoise(run=0.01, boot=0.01), 2, 5, True)
    effect, seen = math.log1p(plan.resolves_pct / 100), 0
    for _ in range(600):
        shared = rng.normal(0, 0.05, 5)
        base, head = (
            [
                BootRuns(k=k, values=(float(np.exp(shared[k] + m + rng.normal(0, plan.sd))),))
                for k in range(5)
            ]
            for m in (0.0, effect)
        )
        seen += (
            compare(base, head, Rule(better="lower", paired=True, robust=False)).verdict == "worse"
        )
    assert abs(seen / 600 - 0.8) < 4 * math.sqrt(0.16 / 600)


def test_more_boots_resolve_less_and_less_knowledge_more() -> None:
    plans = [
        plan_comparison(KnownNoise(run=0.01, boot=0.01), 3, n, False).resolves_pct
        for n in (4, 5, 10, 100, 10_000)
    ]
    assert all(a > b for a, b in itertools.pairwise(plans))
    known = [
        plan_comparison(KnownNoise(run=0.01, boot=0.01, df=df), 3, 6, False).resolves_pct
        for df in (3.0, 10.0, 100.0, math.inf)
    ]
    assert all(a > b for a, b in itertools.pairwise(known))
    assert known[2] == pytest.approx(known[3], rel=0.02)


def test_layout_sets_a_bound_that_no_boots_pass() -> None:
    plan = plan_comparison(KnownNoise(run=0.0, boot=0.001, layout=0.01), 1, 100, False)
    assert plan.boots_for(1.0) is None
    assert plan.boots_for(10.0) is not None
    assert (
        plan.words()
        == f"100 boots a side resolve {plan.resolves_pct:.2g} %; 1 % is out of reach here"
    )


def test_the_plan_in_words() -> None:
    plan = plan_comparison(KnownNoise(run=0.01, boot=0.006), 3, 6, False)
    assert plan.words() == f"6 boots a side resolve 2.2 %; 1 % needs {plan.boots_for(1.0)}"
    assert plan.words(5.0) == "6 boots a side resolve 2.2 %"
    assert (
        plan_comparison(KnownNoise(run=0.01, boot=0.01), 3, 1, False)
        .words()
        .startswith("1 boot a side resolves nothing; 1 % needs ")
    )


@pytest.mark.parametrize(
    "bad", [{"sd_run": -1.0}, {"sd_boot": math.nan}, {"runs": 0}, {"boots": 0}]
)
def test_a_plan_of_nothing_is_refused(bad: dict[str, float]) -> None:
    given = {"sd_run": 0.01, "sd_boot": 0.01, "runs": 3, "boots": 6} | bad
    with pytest.raises(ValueError, match=r"spreads|at least one boot"):
        plan_comparison(
            KnownNoise(run=given["sd_run"], boot=given["sd_boot"]),
            int(given["runs"]),
            int(given["boots"]),
            False,
        )


def test_a_change_of_nothing_cannot_be_planned_for() -> None:
    with pytest.raises(ValueError, match="above 0"):
        plan_comparison(KnownNoise(run=0.01, boot=0.01), 1, 6, False).boots_for(0.0)


@pytest.mark.parametrize("table", PUBLISHED, ids=[table["table"] for table in PUBLISHED])
def test_published_percentages_come_out_digit_by_digit(table: dict[str, Any]) -> None:
    for row in table["rows"]:
        found = compare(
            [BootRuns(k=0, values=(float(row["base"]),))],
            [BootRuns(k=0, values=(float(row["head"]),))],
            Rule(better="higher"),
        )
        assert f"{found.change_pct:+.1f}%" == row["printed"]
        assert found.verdict == "unclear", "one number a side proves nothing"


@pytest.mark.parametrize("boots", [3, 4])
def test_few_boots_resolve_what_the_noise_record_allows(boots: int) -> None:
    """Planned power is that of the comparison itself, which needs a change beyond the modes."""
    noise = KnownNoise(run=0.0, boot=0.02, sd_at_most=0.025)
    plan = plan_comparison(noise, 1, boots, False)
    assert math.isfinite(plan.resolves_pct)
    assert plan.words().startswith(f"{boots} boots a side resolve ")
    rng = np.random.default_rng(boots)
    rule = Rule(better="higher", min_effect_pct=0.0, sd_at_most=0.025)
    effect = math.log1p(plan.resolves_pct / 100.0)
    found = 0
    for _ in range(600):
        sides = [
            [BootRuns(k=k, values=(math.exp(level + rng.normal(0.0, 0.02)),)) for k in range(boots)]
            for level in (0.0, effect)
        ]
        found += compare(sides[0], sides[1], rule).changed
    assert found / 600 == pytest.approx(plan.power, abs=0.06)


def test_without_a_noise_record_three_boots_resolve_nothing() -> None:
    plan = plan_comparison(KnownNoise(run=0.0, boot=0.02), 1, 3, False)
    assert plan.words().startswith("3 boots a side resolve nothing")
    assert plan.boots_for(1000.0) == 4
    known = KnownNoise(run=0.0, boot=0.02, sd_at_most=0.025)
    assert plan_comparison(known, 1, 3, False).boots_for(1000.0) == 2
