"""What to do about testboxes: when one is quarantined, who may take over its work, whether its hardware is what it was."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from swingbot.core.model.testbox_state import TestboxStatus
from swingbot.core.thresholds import MEMORY_SLACK
from swingbot_jobs.testbox.definition import Testbox

FAILED: Final = "failed: "  # begins the reason of a quarantine that failures in a row led to
UNFIT: Final = "screening: "  # begins the reason of a quarantine that its screening led to
# Facts of a boot by which a machine is told from another one, as jobs/schema/facts.yaml names them.
HARDWARE: Final = ("model", "cpu_model", "nr_cpu", "memory_kb", "microcode")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxRules:
    """The settings of section `boxes`, and two constants."""

    # Executors are heard of every 5 s; a host that reboots comes back within this.
    lease_seconds: float = 300.0
    failures: int = 3
    screening_boots: int = 10
    stuck_seconds: float = 7200.0
    invalid_pct: float = 20.0
    invalid_runs: int = 20  # fewer runs say nothing about a share
    mails: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """How far a testbox is with showing its noise: `boots` of an anchor that came up since it was new, or since its hardware changed."""

    hardware: Mapping[str, Any] | None = None  # None: nothing is known of it yet
    screened: bool = False
    boots: int = 0
    tried: int = 0  # anchors that were booted for it and are over


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseExpiry:
    """A lease of whose holder nothing was heard in time."""

    testbox: str
    attempt: int
    order: int
    holder: str
    silent_seconds: float


def expiry_reason(lapse: LeaseExpiry) -> str:
    """Why the testbox is lost, in words."""
    return f"its controller {lapse.holder} was not heard of for {lapse.silent_seconds:.0f} s while it worked for attempt a{lapse.attempt}"


def refusal(testbox: str, holder: str, attempt: int, until: datetime, claimant: str) -> str:
    """What the second controller of a testbox is told."""
    return (
        f"testbox {testbox} is held by controller {holder} for attempt a{attempt} until {until:%H:%M:%S} UTC;"
        f" controller {claimant} must not drive it: stop one of the two, or wait until the other is done"
    )


def quarantine_reason(box: TestboxStatus, most: int) -> str | None:
    """Why the testbox has to be quarantined, in words; None if it need not be."""
    if most <= 0 or box.failures < most:
        return None
    times = "an attempt was" if box.failures == 1 else f"{box.failures} attempts in a row were"
    return f"{FAILED}{times} lost to the testbox or its controller; the last: {box.why or 'no reason known'}"


def failures_allowed(box: Testbox, policy: TestboxRules) -> int:
    """Failures in a row that lead to quarantine; 0, never, for a program on its host: what fails it is the host, and another try costs nothing."""
    return 0 if box.virtual else policy.failures


def screening_boots(box: Testbox, policy: TestboxRules) -> int:
    """How many boots of an anchor the testbox has to make before it may vote; 0 for one that is a program on its host."""
    return 0 if box.virtual else policy.screening_boots


def hardware(box: Testbox, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the machine: `facts` of a boot, and the model as its file names it."""
    known = {
        "model": box.model,
        **{name: facts[name] for name in HARDWARE if facts.get(name) is not None},
    }
    return {name: known[name] for name in HARDWARE if name in known}


def hardware_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """What is another machine than before, in words; None if nothing is. What one side does not know has not changed."""
    told = [
        f"{name} {before[name]} -> {now[name]}"
        for name in HARDWARE
        if name in before and name in now and not _same(name, before[name], now[name])
    ]
    return ", ".join(told) or None


def _same(name: str, before: object, now: object) -> bool:
    if name == "memory_kb" and isinstance(before, int | float) and isinstance(now, int | float):
        return abs(now - before) <= MEMORY_SLACK * max(abs(before), abs(now))
    return str(before) == str(now)


def stand_in(box: Testbox, boxes: Mapping[str, Testbox], fit: Collection[str]) -> str | None:
    """A testbox of the same group that gives the same answer to the same unit jobs and may work; None if there is none."""
    return min(
        (
            name
            for name in fit
            if name != box.name and name in boxes and interchangeable(box, boxes[name])
        ),
        default=None,
    )


def interchangeable(one: Testbox, other: Testbox) -> bool:
    """Whether unit jobs made for `one` are those that would have been made for `other`."""

    def asked(box: Testbox) -> tuple[object, ...]:
        return (
            box.tbox_group,
            box.nr_cpu,
            box.memory_mb,
            dict(box.demand),
            box.lkp,
            box.can_set,
            box.repeatable,
            box.accepts,
            box.cluster,
        )

    return asked(one) == asked(other)
