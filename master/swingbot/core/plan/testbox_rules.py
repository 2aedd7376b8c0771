"""Rules for testboxes: quarantine, substitutes, and changes of the hardware."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from swingbot.core.model.testbox_state import TestboxStatus
from swingbot.core.thresholds import MEMORY_SLACK
from swingbot_jobs.contract.facts import OF_BMC
from swingbot_jobs.testbox.definition import Testbox

FAILED: Final = "failed: "  # prefix of the reason of a quarantine after repeated failures
UNFIT: Final = "screening: "  # prefix of the reason of a quarantine after a failed screening
# Facts of a boot that identify a machine, with the names in jobs/schema/facts.yaml
HARDWARE: Final = (
    "model",
    "cpu_model",
    "nr_cpu",
    "memory_kb",
    "dimms",
    "microcode",
    "bios_version",
    "pcie_lanes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxRules:
    """Settings of section `testboxes`, and two constants."""

    # Executors report every 5 s; a rebooting host returns within this time.
    lease_seconds: float = 300.0
    failures: int = 3
    screening_boots: int = 10
    stuck_seconds: float = 7200.0
    invalid_pct: float = 20.0
    invalid_runs: int = 20  # minimum number of runs to compute a share
    mails: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """Progress of a testbox in showing its noise.

    `boots` is the number of anchor boots that came up since it was new or its hardware changed.
    """

    hardware: Mapping[str, Any] | None = None  # None: not known yet
    screened: bool = False
    boots: int = 0
    tried: int = 0  # completed anchors that were booted for it


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseExpiry:
    """A lease whose holder did not report in time."""

    testbox: str
    attempt: int
    order: int
    holder: str
    silent_seconds: float  # 0: it is valid for too long, because the clock was set back


def expiry_reason(lapse: LeaseExpiry) -> str:
    """Return why the testbox is lost."""
    if lapse.silent_seconds <= 0:
        return (
            f"its controller {lapse.holder} did not report since the clock was set back, while it"
            f" worked for attempt a{lapse.attempt}"
        )
    return (
        f"its controller {lapse.holder} did not report for {lapse.silent_seconds:.0f} s while it"
        f" worked for attempt a{lapse.attempt}"
    )


def quarantine_reason(testbox: TestboxStatus, most: int) -> str | None:
    """Return why the testbox must be quarantined; None if it need not be."""
    if most <= 0 or testbox.failures < most:
        return None
    times = (
        "an attempt was" if testbox.failures == 1 else f"{testbox.failures} attempts in a row were"
    )
    why = testbox.why or "no reason known"
    return f"{FAILED}{times} lost to the testbox or its controller; the last: {why}"


def failures_allowed(testbox: Testbox, rules: TestboxRules) -> int:
    """Return how many failures in a row lead to quarantine; 0 for never.

    A testbox that is a program on its host is never quarantined: its failures are those of the
    host, and another attempt is free.
    """
    return 0 if testbox.virtual else rules.failures


def screening_boots(testbox: Testbox, rules: TestboxRules) -> int:
    """Return how many anchor boots a testbox needs before its results count.

    0 for a testbox that is a program on its host.
    """
    return 0 if testbox.virtual else rules.screening_boots


def hardware(testbox: Testbox, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of the machine: `facts` of a boot, and the model named in its file."""
    known = {"model": testbox.model, **{k: v for k, v in facts.items() if v is not None}}
    return {name: known[name] for name in _hardware_names(known) if name in known}


def hardware_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return how the machine differs from before; None if it does not.

    A fact that one side lacks has not changed.
    """
    changed = [
        f"{name} {before[name]} -> {now[name]}"
        for name in _hardware_names(before)
        if name in before and name in now and not _same(name, before[name], now[name])
    ]
    return ", ".join(changed) or None


def _hardware_names(known: Mapping[str, Any]) -> list[str]:
    return [*HARDWARE, *sorted(name for name in known if name.startswith(OF_BMC))]


def _same(name: str, before: object, now: object) -> bool:
    if name == "memory_kb" and isinstance(before, int | float) and isinstance(now, int | float):
        return abs(now - before) <= MEMORY_SLACK * max(abs(before), abs(now))
    return str(before) == str(now)


def stand_in(
    testbox: Testbox, testboxes: Mapping[str, Testbox], fit: Collection[str]
) -> str | None:
    """Return a usable testbox of the same group that runs the same unit jobs; None if none."""
    return min(
        (
            name
            for name in fit
            if name != testbox.name
            and name in testboxes
            and interchangeable(testbox, testboxes[name])
        ),
        default=None,
    )


def interchangeable(one: Testbox, other: Testbox) -> bool:
    """Return True if unit jobs for `one` are identical to those for `other`."""

    def asked(testbox: Testbox) -> tuple[object, ...]:
        return (
            testbox.tbox_group,
            testbox.nr_cpu,
            testbox.memory_mb,
            dict(testbox.demand),
            testbox.lkp,
            testbox.can_set,
            testbox.repeatable,
            testbox.accepts,
            testbox.cluster,
            testbox.kconfig,
        )

    return asked(one) == asked(other)
