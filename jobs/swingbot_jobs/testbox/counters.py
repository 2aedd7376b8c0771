"""The hardware counters that perf stat counts around each run, and those that a machine lacks.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

USUAL: Final = (
    "cycles",
    "instructions",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
)
# Names of x86's kernel for them, in /sys/bus/event_source/devices/PMU/events: those of the CPU's
# family alone are there.
_SYSFS: Final = {"cycles": "cpu-cycles", "branches": "branch-instructions"}
_HYBRID: Final = ("cpu_core", "cpu_atom", "cpu_lowpower")
# Prints `software` if the kernel has perf events, and each PMU and PMU/EVENT of an x86 CPU.
SCRIPT: Final = (
    r"""
say pmus "$(
	cd /sys/bus/event_source/devices 2>/dev/null || exit
	for pmu in """
    + " ".join(("software", "cpu", *_HYBRID))
    + r"""; do
		[ ! -d "$pmu" ] || echo "$pmu"
		for event in """
    + " ".join(_SYSFS.get(event, event) for event in USUAL)
    + r"""; do
			[ ! -e "$pmu/events/$event" ] || echo "$pmu/$event"
		done
	done | tr '\n' ' '
)"
"""
)


def lacking(counted: Collection[str]) -> str:
    """Return a sentence that names the usual counters outside `counted`; empty if none is."""
    missing = _missing(counted)
    why = ": it has no PMU, as most virtual machines" if len(missing) == len(USUAL) else ""
    return f"the machine has no {', '.join(missing)}{why}" if missing else ""


def lacking_in_boot(fact: str) -> str:
    """Return the same of a boot's fact `perf_events`; empty also if the boot has none."""
    counted = set(re.split(r"[{},\s]+", fact)) - {""}
    if counted == {"none"}:
        return "perf could count nothing"
    return lacking(counted) if counted else ""


def described(pmus: str) -> str:
    """Return which counters an x86 CPU has, from what `SCRIPT` prints."""
    words = pmus.split()
    found = [pmu for pmu in ("cpu", *_HYBRID) if pmu in words]
    if not words:
        return "unknown: the system has no perf events"
    if not found:
        return lacking(())
    lacks = [
        f"{pmu} has no {', '.join(missing)}"
        for pmu in found
        if (missing := _missing(_events(pmu, words)))
    ]
    if len(found) > 1:
        halves = " and ".join(f"{pmu}/.../" for pmu in found)
        return "; ".join([f"a hybrid CPU: {halves} are counted and added up", *lacks])
    return lacking(_events(found[0], words)) or f"all of {', '.join(USUAL)}"


def _missing(counted: Collection[str]) -> list[str]:
    return [event for event in USUAL if event not in counted]


def _events(pmu: str, words: Collection[str]) -> set[str]:
    return {event for event in USUAL if f"{pmu}/{_SYSFS.get(event, event)}" in words}
