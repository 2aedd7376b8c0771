"""How often a night of one kernel names what was planted, and what was not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from swingbot.core.plan.long_screening import ScreenedBoot, judge_screening
from swingbot.core.stats.rules import rule_for
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.ssh import SshDriver
from tests.amount import ALL

JOB = UnitJob(name="j", program="page-fault", params={}, runs=3)
RULE = rule_for("benchmark", "higher", 2.0)
SEEDS = 1000 if ALL else 100
KEXEC = SshDriver(
    host="rack7",
    key="/k",
    known_hosts="/h",
    enter="kexec",
    reboot_command=("once", "{kernel}", "{initrd}", "{cmdline}"),
)


def night(
    seed: int,
    *,
    first: float = 0.0,  # of the first run of a boot, as a log ratio
    kexec: float = 0.0,  # of the last boot by kexec
    level: float = 0.0,  # of all boots by kexec
    modes: float = 0.0,  # of three boots in ten
    drift: float = 0.0,  # of the last boot
    ways: bool = True,
) -> list[ScreenedBoot]:
    """40 boots that spread by 0.4 %, with three runs that spread by 0.3 %."""
    rng, boots = np.random.default_rng(seed), []
    for k in range(40):
        entered = KEXEC.for_boot(k, "screen").enter if ways else "kexec"
        mean = rng.normal(0.0, 0.004) + modes * (rng.random() < 0.3) + drift * k / 39
        mean += (level + kexec * k / 39) * (entered == "kexec")
        runs = mean + rng.normal(0.0, 0.003, 3)
        runs[0] += first
        boots.append(ScreenedBoot(values=tuple(800.0 * np.exp(runs)), entered=entered))
    return boots


def named(**planted: Any) -> dict[str, float]:
    """Share of the nights in which each kind of finding was claimed."""
    found = Counter(
        kind
        for seed in range(SEEDS)
        for kind in judge_screening(JOB, "m", night(seed, **planted), RULE).findings
    )
    return {kind: count / SEEDS for kind, count in found.items()}


@pytest.mark.parametrize("ways", [True, False])
def test_a_sound_testbox_is_rarely_accused(ways: bool) -> None:
    assert sum(named(ways=ways).values()) <= 0.02


@pytest.mark.parametrize(
    ("kind", "planted"),
    [
        ("warm-up", {"first": -0.03}),
        ("kexec", {"kexec": -0.03}),
        ("kexec", {"level": -0.02}),
        ("drift", {"drift": 0.02}),
        ("drift", {"kexec": -0.03, "ways": False}),
        ("modes", {"modes": -0.05}),
    ],
)
def test_what_was_planted_is_named_and_nothing_else(kind: str, planted: dict[str, Any]) -> None:
    found = named(**planted)
    assert found.pop(kind, 0.0) >= 0.9
    assert sum(found.values()) <= 0.05


def test_a_first_run_and_a_drift_after_kexec_are_named_together() -> None:
    found = named(first=-0.03, kexec=-0.03)
    assert min(found["warm-up"], found["kexec"]) >= 0.9


def test_the_noise_is_stated_without_what_was_found() -> None:
    stated = [
        judge_screening(JOB, "m", night(seed, first=-0.03, kexec=-0.03), RULE).noise_pct or 0.0
        for seed in range(50)
    ]
    # A boot mean of two runs spreads by sqrt(0.4^2 + 0.3^2 / 2) = 0.45 %.
    assert 0.40 <= float(np.median(stated)) <= 0.50
