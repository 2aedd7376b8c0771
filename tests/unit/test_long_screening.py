"""The long form of screening: what a night boots, and the words of its answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from swingbot.core.plan.long_screening import (
    NightTooShort,
    ScreenedBoot,
    judge_screening,
    night_words,
    plan_screening,
    suspicious,
)
from swingbot.core.stats.rules import rule_for
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.file import load_all
from tests.calibration.test_screening_night import KEXEC, RULE, night

TESTBOX = replace(
    load_all(Path(__file__).parents[2] / "workers" / "testboxes")["vm-tcg"], boot_seconds=180.0
)
JOB = UnitJob(name="j", program="will-it-scale", params={"runtime": "300"}, runs=5)


def test_jobs_that_fit_are_not_shortened_but_lose_the_runs_of_their_monitors() -> None:
    job = replace(JOB, params={"runtime": "20"}, monitors=("perf-profile",))
    plan = plan_screening(TESTBOX, [job], 8.0)
    assert plan.unit_jobs == (replace(job, monitors=()),) and plan.runtime_share == 1.0
    assert (plan.boot_seconds, plan.boots) == (330.0, 80)
    assert plan.full_boot_seconds > plan.boot_seconds


def test_longer_jobs_are_shortened_until_forty_boots_fit() -> None:
    plan = plan_screening(TESTBOX, [JOB] * 2, 8.0)
    (job, _) = plan.unit_jobs
    assert (job.runs, job.params["runtime"], plan.runtime_share) == (3, "60", 0.2)
    assert plan.boots >= 40 and plan.boots % 4 == 0 and plan.seconds <= 8 * 3600
    assert job.name == JOB.name


def test_measured_boots_count_instead_of_estimates() -> None:
    slow = plan_screening(TESTBOX, [JOB], 8.0, measured=2 * (180.0 + 5 * 310.0))
    assert slow.full_boot_seconds == pytest.approx(2 * (180.0 + 5 * 310.0))
    assert slow.runtime_share < plan_screening(TESTBOX, [JOB], 8.0).runtime_share


def test_a_night_that_is_too_short_says_how_long_it_has_to_be() -> None:
    with pytest.raises(NightTooShort, match="40 boots with the shortest runs take .* --hours 3"):
        plan_screening(TESTBOX, [JOB], 1.0)


def test_boots_take_turns_that_mirror_and_favour_neither_way() -> None:
    ways = [KEXEC.for_boot(k, "screen").enter for k in range(16)]
    assert ways == (["kexec"] * 2 + ["reboot"] * 4 + ["kexec"] * 2) * 2
    assert {KEXEC.for_boot(k, "anchor").enter for k in range(16)} == {"kexec"}
    assert {replace(KEXEC, reboot_command=()).for_boot(k, "screen").enter for k in range(16)} == {
        "kexec"
    }


def test_the_words_say_only_what_was_measured() -> None:
    all_of_it = night_words(judge_screening(JOB, "m", night(1), RULE), 660.0, ways=True)
    assert all_of_it.startswith("resolves 1.4 % of m with 5 boots a side (1 h 50 min); kexec")
    assert "kexec drifts: no; drift: no; warm-up: no; modes: no; noise of the day: 0.4" in all_of_it
    few = [replace(boot, values=boot.values[:1], entered="") for boot in night(1)[:6]]
    words = night_words(judge_screening(JOB, "m", few, RULE), None, ways=False)
    assert "kexec" not in words and "modes: not measured" in words
    assert "warm-up: not measured" in words and "drift: not measured" in words
    nothing = judge_screening(JOB, "m", [ScreenedBoot(values=()), *few[:1]], RULE)
    assert night_words(nothing, 9.0, ways=False).startswith("m: 1 boots are too few to say")


def test_longer_runs_are_said_to_resolve_more_at_best() -> None:
    answer = judge_screening(JOB, "m", night(2), RULE, runtime_share=0.1)
    assert answer.full_resolves_pct is not None and answer.resolves_pct is not None
    assert 0.5 * answer.resolves_pct < answer.full_resolves_pct < answer.resolves_pct
    assert "with the full runtime between" in night_words(answer, 660.0, ways=True)


def test_values_of_zero_and_below_are_judged_as_differences() -> None:
    boots = [ScreenedBoot(values=(float(k % 3 - 1), float(k % 2))) for k in range(40)]
    assert judge_screening(JOB, "m", boots, rule_for("benchmark", "higher", 2.0)).boots == 40


def test_noisy_settings_and_a_twin_that_differs_are_suspicious() -> None:
    own = {"turbo": "on", "governor": "powersave", "memory_kb": 64 << 20, "nr_cpu": 128}
    twin = {"memory_kb": 96 << 20, "nr_cpu": 128}
    assert suspicious(own, {"rack8": twin}) == [
        "turbo is on",
        "the governor is powersave",
        "it differs from its twin rack8 (memory_kb 100663296 -> 67108864)",
    ]
    assert suspicious({"turbo": "off", "governor": "performance"}, {"rack8": twin}) == []


def test_memory_modules_that_are_missing_against_a_twin_are_suspicious() -> None:
    own = {"dimms": "6 of 16 slots: 6 x 16 GiB at 2666 MT/s", "bios_version": "2.1"}
    twin = {"dimms": "8 of 16 slots: 8 x 16 GiB at 2666 MT/s", "bios_version": "2.1"}
    assert suspicious(own, {"rack8": twin}) == [
        f"it differs from its twin rack8 (dimms {twin['dimms']} -> {own['dimms']})"
    ]
