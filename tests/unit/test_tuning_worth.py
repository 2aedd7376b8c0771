"""What an item of a tuning list is worth: which items are switched, and what boots say of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swingbot.core.plan.tuning_worth import ItemWorth, judge_item, switched
from swingbot.core.stats.rules import rule_for
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox import tuning
from swingbot_jobs.testbox.file import load_all

WORKERS = Path(__file__).parents[2] / "workers"
QUIET = tuning.load_all(WORKERS / "tuning")["quiet-cpu"]
TESTBOX = load_all(WORKERS / "testboxes")["vm-tcg"]
JOB = UnitJob(name="j", program="page-fault", params={}, runs=3)
RULE = rule_for("benchmark", "higher", 2.0)
# A virtual machine without frequency driver and NUMA, as its boot reports it.
KNOWN: dict[str, Any] = {
    "kernel.randomize_va_space": 2,
    "kernel.nmi_watchdog": 0,
    "thp_enabled": "madvise",
    "thp_defrag": "madvise",
    "clocksource": "tsc",
    "swap_kb": 0,
    "throttled": 0,
    "stolen_ticks": 0,
}


def demanded(**more: Any) -> UnitJob:
    return replace(JOB, demand=dict(sorted({**QUIET.demand, **more}.items())))


def test_each_item_is_switched_alone_and_others_say_why_not() -> None:
    job = demanded()
    found = switched(TESTBOX, QUIET, [job], KNOWN, "trusted")
    assert sorted(found.jobs) == [
        *("aslr", "audit", "clocksource", "huge_pages", "idle_states"),
        *("mitigations", "nmi_watchdog"),
    ]
    ((thp,), (aslr,), (mitigations,)) = (
        found.jobs[name] for name in ("huge_pages", "aslr", "mitigations")
    )
    assert thp.demand["thp_enabled"] == "never" and "thp_defrag" not in thp.demand
    assert aslr == replace(job, demand={**job.demand, "kernel.randomize_va_space": "0"})
    assert mitigations == replace(job, cmdline="mitigations=off")
    for item in ("governor", "turbo", "epp"):
        assert found.skipped[item] == "no frequency driver"
    assert found.skipped["numa_balancing"] == "its kernel reports no kernel.numa_balancing"
    assert "no later word" in found.skipped["kernel_layout"]
    assert found.skipped["heat"] == "nothing sets throttled: it is only checked"
    for item in ("interrupts", "housekeeping", "watchdogs", "panic"):
        assert found.skipped[item].startswith("it concerns the idle system")
    assert not found.jobs.keys() & found.skipped.keys()


def test_a_governor_is_left_to_the_kernel_and_turbo_is_switched_on() -> None:
    found = switched(TESTBOX, QUIET, [demanded()], {}, "trusted")
    assert "governor" not in found.jobs["governor"][0].demand
    assert found.jobs["turbo"][0].demand["turbo"] == "on"


def test_what_the_job_says_itself_stays_and_left_out_items_are_named() -> None:
    list_ = QUIET.without(["turbo", "aslr"])
    job = demanded(thp_enabled="never", thp_defrag="never")
    found = switched(TESTBOX, list_, [job], KNOWN, "trusted")
    assert found.skipped["huge_pages"].startswith("the testbox's jobs or its file give thp_enabled")
    assert found.skipped["turbo"] == "no frequency driver"
    assert found.skipped["aslr"] == "left out by tuning_without in the testbox file"


def test_words_that_a_testbox_cannot_set_are_not_tried() -> None:
    testbox = replace(TESTBOX, can_set=("sysctl",))
    found = switched(testbox, QUIET, [demanded()], KNOWN, "trusted")
    assert found.skipped["mitigations"] == found.skipped["audit"]
    assert "cannot set words of the kernel's command line" in found.skipped["audit"]


def worth(
    seed: int, level: float = 0.0, spread: float = 1.0, items: int = 8, boots: int = 8
) -> ItemWorth:
    """Boots of each state that spread by 0.4 % and drift together by 1 %."""
    rng = np.random.default_rng(seed)
    usual: dict[int, tuple[float, ...]] = {}
    off: dict[int, tuple[float, ...]] = {}
    for k in range(boots):
        drift = 0.01 * k / boots
        for side, shift, factor in ((usual, 0.0, 1.0), (off, level, spread)):
            mean = drift + shift + factor * rng.normal(0.0, 0.004)
            side[k] = tuple(800.0 * np.exp(mean + rng.normal(0.0, 0.001, 3)))
    return judge_item(JOB, "m", (usual, off), RULE, items)


def test_intervals_hold_and_a_sound_item_is_rarely_named() -> None:
    nights = [worth(seed, items=1) for seed in range(1000)]
    assert sum(bool(one.named) for one in nights) <= 65  # 50 are stated
    planted = [worth(seed, level=-0.03, items=1) for seed in range(400)]
    missed = sum(one.level_pct.beside(100 * np.expm1(-0.03)) for one in planted)
    assert missed <= 20  # 10 are stated: half of ALPHA


def test_boots_far_off_are_no_difference_of_spread() -> None:
    """One boot in twenty is far off, whatever the item; F calls a third of the nights different."""
    named = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        far = np.where(rng.random((2, 8)) < 0.05, 0.05, 0.004)
        usual, off = ({k: (800.0 * np.exp(x),) for k, x in enumerate(side)}
                      for side in far * rng.standard_normal((2, 8)))  # fmt: skip
        named += "spread" in judge_item(JOB, "m", (usual, off), RULE, 1).named
    assert named <= 12  # 5 are stated


@pytest.mark.parametrize(
    ("planted", "kind"), [({"level": -0.02}, "level"), ({"spread": 4.0, "boots": 20}, "spread")]
)
def test_what_was_planted_is_named(planted: dict[str, Any], kind: str) -> None:
    named = [worth(seed, **planted).named for seed in range(100)]
    assert sum(kind in one for one in named) >= 90


def test_the_words_say_level_spread_and_their_intervals() -> None:
    words = worth(1, level=-0.1, spread=12.0, boots=20).words
    assert words.startswith("m -") and " times the spread between boots (" in words
    assert "a comparison needs" in words and words.endswith(" times as many boots without it")
    assert worth(2).words.endswith(": no difference found")


def test_few_boots_and_odd_values_raise_nothing() -> None:
    one = judge_item(JOB, "m", ({0: (1.0,)}, {0: (2.0,)}), RULE, 1)
    assert one.level_pct.value is None and one.words == "m: too few boots"
    assert judge_item(JOB, "m", ({}, {0: (2.0,)}), RULE, 1).boots == 0
    few = [{k: (800.0 + seed * k**2,) for k in range(4)} for seed in (1, 90)]
    assert judge_item(JOB, "m", (few[0], few[1]), RULE, 8).spread_ratio.value is None
    same = dict.fromkeys(range(8), (5.0,))
    assert judge_item(JOB, "m", (same, same), RULE, 1).spread_ratio.value is None
    zero = {k: (float(k % 3 - 1),) for k in range(8)}
    assert judge_item(JOB, "m", (zero, same), RULE, 1).boots == 8
