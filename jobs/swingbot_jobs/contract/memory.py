"""What a unit job may ask of the memory it runs in: a limit, and a swap area.

They are parameters of every benchmark (`memory_max`, `swap`, and the files of LKP's `cgroup2`), so
they are axes of a job, a part of its name and in the environment of its program. The runner applies
them around the runs of the unit job, and reads back what the kernel made of them: facts
`set.memory_max`, `set.swap`, `set.memory.high`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from swingbot_jobs.contract.facts import meets
from swingbot_jobs.printable import printable

MEMORY_MAX: Final = "memory_max"  # bytes
SWAP: Final = "swap"
# Files of the run's cgroup that LKP's program cgroup2 sets too, and what each needs.
CGROUP_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "memory.high": ("MEMCG",),
    "memory.low": ("MEMCG",),
    "memory.max": ("MEMCG",),
    "memory.swap.max": ("MEMCG", "SWAP"),
    "pids.max": ("CGROUP_PIDS",),
}
_NAMES: Final = (MEMORY_MAX, *CGROUP_FILES, SWAP)
# Swap areas, and what each needs to be built into the kernel.
SWAPS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "zram": ("SWAP", "ZRAM"),
    "disk": ("SWAP", "VIRTIO_BLK"),
}
STATE: Final = "memory-state"  # file of a run: what was in force during it
OOM: Final = "oom"  # file of a run that failed: the kernel's line about the process it ended
_OOM_CHARACTERS: Final = 500  # of that line; the rest is cut
PAGE: Final = 4096
# Demands on what a run did: `vmstat.pgscan_anon: ">=1000"` is how much that counter of
# /proc/vmstat has to grow, by the snapshots in the run's file VMSTAT.
COUNTED: Final = "vmstat."
VMSTAT: Final = "proc-vmstat"
# Prefix of a counter's name -> the work, its unit, and the participle; the first match applies.
# Counters without a match keep their name: numa_hit, for instance, does not count NUMA balancing.
_WORK: Final = {
    "pgscan_direct_throttle": ("throttling of reclaim", "time", ""),
    "pgscan_": ("reclaim", "page", " scanned"),
    "pgsteal_": ("reclaim", "page", " reclaimed"),
    "pswpin": ("swapping in", "page", " swapped in"),
    "pswpout": ("swapping out", "page", " swapped out"),
    "workingset_refault": ("refault", "page", " refaulted"),
    "numa_hint_faults": ("NUMA balancing", "fault", ""),
    "numa_pages_migrated": ("NUMA balancing", "page", " migrated"),
}
_NUMBER: Final = re.compile(r"[0-9]{1,20}")


def asked(params: Mapping[str, str]) -> dict[str, str]:
    """Return the memory parameters among those of a unit job."""
    return {name: params[name] for name in _NAMES if params.get(name)}


def limits(params: Mapping[str, str]) -> dict[str, str]:
    """Return what the files of the run's cgroup hold by name; a unit job names none twice."""
    found = asked(params)
    found.pop(SWAP, None)
    return {file_of(name): value for name, value in found.items()}


def file_of(name: str) -> str:
    """Return the file of the run's cgroup that a limit is written to."""
    return "memory.max" if name == MEMORY_MAX else name


def kconfig_needed(params: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options of the kernel that the memory parameters need."""
    needed = [option for file in limits(params) for option in CGROUP_FILES[file]]
    return tuple(dict.fromkeys((*needed, *SWAPS.get(params.get(SWAP, ""), ()))))


def in_force(text: str) -> dict[str, str]:
    """Return the memory parameters that were in force, from a run's file STATE.

    Its lines are `NAME VALUE`; anything else is left out, since the guest may have written it.
    """
    found: dict[str, str] = {}
    for line in text.splitlines()[:8]:
        name, _, value = line.partition(" ")
        if name in _NAMES:
            found.setdefault(name, value.strip()[:80])
    return found


def unlike(params: Mapping[str, str], text: str) -> str | None:
    """Return why a run did not have the memory that its unit job asks for, in a sentence.

    `text` is the run's file STATE. None if it had. The kernel rounds a limit down to whole pages.
    """
    found = in_force(text)
    for name, value in asked(params).items():
        if file_of(name).startswith("memory.") and value != "max":
            value = str(int(value) // PAGE * PAGE)
        if name not in found:
            return f"not as set: {name} could not be set to {value}"
        if found[name] != value:
            return f"not as set: {name} was {found[name]}, not {value}"
    return None


def too_little(demands: Mapping[str, str], vmstat: str) -> str | None:
    """Return why a run did too little of what its unit job is named after; None if it did enough.

    `demands` are those on counters (COUNTED), `vmstat` the run's file VMSTAT.
    """
    for name, wanted in sorted(demands.items()):
        counter = name.removeprefix(COUNTED)
        grown = _grown(counter, vmstat)
        if grown is None:
            return f"{name} is unknown in this run; {wanted} is required"
        if not meets(grown, wanted):
            return f"{_amount(counter, grown, wanted)} ({name} {wanted})"
    return None


def _amount(counter: str, grown: int, wanted: str) -> str:
    """Return how much of its work a counter saw, and how that is not what is wanted."""
    what, noun, done = next(
        (words for start, words in _WORK.items() if counter.startswith(start)), (counter, "", "")
    )
    if grown == 0:
        how = f"no {what} happened"
    else:
        too = {">": "too little", "<": "too much"}.get(wanted[:1], "another amount of")
        how = f"{too} {what}"
    if not noun:
        return f"{how}: it grew by {grown}"
    return f"{how}: {grown} {noun}{'' if grown == 1 else 's'}{done}"


def _grown(counter: str, vmstat: str) -> int | None:
    """Return how much a counter grew from the first snapshot to the last; None if unknown."""
    words = [line.split() for line in vmstat.splitlines()]
    values = [
        int(pair[1])
        for pair in words
        if len(pair) == 2 and pair[0] == counter and _NUMBER.fullmatch(pair[1])
    ]
    return values[-1] - values[0] if len(values) > 1 and values[-1] >= values[0] else None


def killed(files: Mapping[str, str]) -> str | None:
    """Return that the kernel's OOM killer ended processes during a run, in a sentence; None if it
    ended none.

    `files` are those of the run. The sentence quotes the last line of OOM, if there is one.
    """
    lines = files.get(OOM, "").splitlines()
    if line := lines[-1].strip()[:_OOM_CHARACTERS] if lines else "":
        return f"the OOM killer ended it: {printable(line)}"
    ended = _grown("oom_kill", files.get(VMSTAT, ""))
    return "the OOM killer ended a process during it" if ended else None
