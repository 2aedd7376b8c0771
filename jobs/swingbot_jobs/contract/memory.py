"""What a unit job may ask of the memory and processors it runs on: limits, a swap area, nodes.

They are parameters of every benchmark (`memory_max`, `swap`, `cpus`, `numa`, and the files of LKP's
`cgroup2`), so they are axes of a job, a part of its name and in the environment of its program. The
runner applies them around the runs of the unit job, and reads back what the kernel made of them:
facts `set.memory_max`, `set.swap`, `set.cpus`, `set.numa`, `set.memory.high`.
`hugepages` is the sysctl vm.nr_hugepages as a parameter, and a fact as that one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from swingbot_jobs.contract.facts import meets
from swingbot_jobs.printable import printable

MEMORY_MAX: Final = "memory_max"  # bytes
SWAP: Final = "swap"
CPUS: Final = "cpus"  # as cpuset.cpus has them: 0-3,8
NUMA: Final = "numa"
HUGEPAGES: Final = "hugepages"
HUGEPAGES_SYSCTL: Final = "vm.nr_hugepages"
HUGEPAGE: Final = 2 << 20  # the usual size, of x86 and of arm64 with pages of 4 KiB
# Numbers of processors or nodes: 0-3,8.
LIST: Final = r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?){0,63}"
BIND: Final = "bind:"
# How processes of the run allocate by themselves: the policy that /proc/<pid>/numa_maps names.
POLICIES: Final[Mapping[str, str]] = {"interleave": "interleave", "local": "default"}
POLICY: Final = "policy"  # not a file of the cgroup: of the runner
# Files of the run's cgroup that LKP's program cgroup2 sets too, and what each needs.
CGROUP_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "memory.high": ("MEMCG",),
    "memory.low": ("MEMCG",),
    "memory.max": ("MEMCG",),
    "memory.swap.max": ("MEMCG", "SWAP"),
    "pids.max": ("CGROUP_PIDS",),
    "cpuset.cpus": ("CPUSETS",),
    "cpuset.mems": ("CPUSETS", "NUMA"),
}
_NAMES: Final = (MEMORY_MAX, *CGROUP_FILES, SWAP, CPUS, NUMA)
_FILES: Final[Mapping[str, str]] = {
    MEMORY_MAX: "memory.max",
    CPUS: "cpuset.cpus",
    NUMA: "cpuset.mems",
}
# Swap areas, and what each needs to be built into the kernel.
SWAPS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "zram": ("SWAP", "ZRAM"),
    "zswap": ("SWAP", "ZSWAP", "BLK_DEV_RAM"),
    "ramdisk": ("SWAP", "BLK_DEV_RAM"),
    "disk": ("SWAP", "VIRTIO_BLK"),
}
# The size of /dev/ram0, the area of `ramdisk` and `zswap`, on the command line of the boot, in KiB:
# Documentation/admin-guide/blockdev/ramdisk.rst. The default is that of BLK_DEV_RAM_SIZE.
RAM_DISK_SIZE: Final = "brd.rd_size"
_RAM_DISK: Final = re.compile(r"brd\.rd_size=([0-9]{1,10})")
_RAM_DISK_KIB: Final = 4096
STATE: Final = "memory-state"  # file of a run: what was in force during it
OOM: Final = "oom"  # file of a run: the kernel's line about a process that its OOM killer ended
SWAP_ERROR: Final = "swap-error"  # file of a run: the kernel's lines about its swap area
_LINE_CHARACTERS: Final = 500  # of such a line; the rest is cut
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
    "thp_fault_alloc": ("huge page fault", "huge page", ""),
    "thp_collapse_alloc": ("collapse", "huge page", ""),
    "compact_success": ("successful compaction", "time", ""),
    "compact_isolated": ("compaction", "page", " isolated"),
    "pgmigrate_success": ("migration", "page", " migrated"),
    "zswpout": ("storing in zswap", "page", " stored"),
    "zswpin": ("loading from zswap", "page", " loaded"),
    "pgfault": ("page fault", "fault", ""),
    "pgfree": ("freeing", "page", " freed"),
    "numa_hint_faults": ("NUMA balancing", "fault", ""),
    "numa_pages_migrated": ("NUMA balancing", "page", " migrated"),
}
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
_LIST: Final = re.compile(LIST)


def asked(params: Mapping[str, str]) -> dict[str, str]:
    """Return the memory parameters among those of a unit job."""
    return {name: params[name] for name in _NAMES if params.get(name)}


def limits(params: Mapping[str, str]) -> dict[str, str]:
    """Return what the files of the run's cgroup hold by name; a unit job names none twice."""
    return {
        file_of(name): value.removeprefix(BIND)
        for name, value in asked(params).items()
        if name != SWAP and value not in POLICIES
    }


def policy(params: Mapping[str, str]) -> str:
    """Return the policy of the run's processes, one of POLICIES; "" if the job asks for none."""
    wanted = params.get(NUMA, "")
    return wanted if wanted in POLICIES else ""


def file_of(name: str) -> str:
    """Return the file of the run's cgroup that a limit is written to."""
    return _FILES.get(name, name)


def read_at(name: str, value: str) -> str:
    """Return the file of the run's cgroup that says what was in force; or POLICY."""
    if name == NUMA and value in POLICIES:
        return POLICY
    file = file_of(name)
    return f"{file}.effective" if file.startswith("cpuset.") else file


def numbers(text: str) -> frozenset[int]:
    """Return the processors or nodes of a list as the kernel writes it (LIST); none of another."""
    if not _LIST.fullmatch(text):
        return frozenset()
    ends = [part.partition("-") for part in text.split(",")]
    return frozenset(
        number for first, _, last in ends for number in range(int(first), int(last or first) + 1)
    )


def kconfig_needed(params: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options of the kernel that the memory parameters need."""
    needed = [option for file in limits(params) for option in CGROUP_FILES[file]]
    if policy(params):
        needed += ("NUMA", "PROC_PAGE_MONITOR")
    if HUGEPAGES in params:
        needed.append("HUGETLBFS")
    return tuple(dict.fromkeys((*needed, *SWAPS.get(params.get(SWAP, ""), ()))))


def ram_disk(cmdline: str) -> int:
    """Return the size of the RAM disk of a boot with these words on its command line, in bytes."""
    sizes = [match[1] for word in cmdline.split() if (match := _RAM_DISK.fullmatch(word))]
    return int(sizes[-1] if sizes else _RAM_DISK_KIB) << 10


def with_hugepages(params: Mapping[str, str], sysctl: Mapping[str, str]) -> Mapping[str, str]:
    """Return the sysctls of a unit job with the one that its parameter `hugepages` is.

    Raises ValueError if both set it.
    """
    if HUGEPAGES not in params:
        return sysctl
    if HUGEPAGES_SYSCTL in sysctl:
        raise ValueError(f"{HUGEPAGES} is the sysctl {HUGEPAGES_SYSCTL}: set one of them")
    return {**sysctl, HUGEPAGES_SYSCTL: params[HUGEPAGES]}


def in_force(text: str) -> dict[str, str]:
    """Return the memory parameters that were in force, from a run's file STATE.

    Its lines are `NAME VALUE`; anything else is left out, since the guest may have written it.
    """
    found: dict[str, str] = {}
    for line in text.splitlines()[: len(_NAMES)]:
        name, _, value = line.partition(" ")
        if name in _NAMES:
            found.setdefault(name, _read(name, value.strip()[:80]))
    return found


def _read(name: str, value: str) -> str:
    """Return what was read as a job writes it: `numa` is a list of nodes, or a policy."""
    if name != NUMA:
        return value
    policy = value.partition(":")[0]
    words = {kernels: ours for ours, kernels in POLICIES.items()}
    return f"{BIND}{value}" if numbers(value) else words.get(policy, value)


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
        if not _same(found[name], value):
            return f"not as set: {name} was {found[name]}, not {value}"
    return None


def _same(found: str, wanted: str) -> bool:
    """`0,1` is `0-1`."""
    lists = [numbers(text.removeprefix(BIND)) for text in (found, wanted)]
    return found == wanted or bool(lists[0] and lists[0] == lists[1])


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


def memory_failure(files: Mapping[str, str]) -> str | None:
    """Return that the kernel's OOM killer ended processes during a run, or that its swap area
    failed, in a sentence; None if neither happened.

    `files` are those of the run. The sentence quotes the last line of OOM or SWAP_ERROR, if there
    is one.
    """
    if line := _last_line(files.get(OOM, "")):
        whom = "a process during it" if files.get("rc", "").strip() == "0" else "it"
        return f"the OOM killer ended {whom}: {line}"
    if _grown("oom_kill", files.get(VMSTAT, "")):
        return "the OOM killer ended a process during it"
    if line := _last_line(files.get(SWAP_ERROR, "")):
        return f"its swap area failed: {line}"
    return None


def _last_line(text: str) -> str:
    lines = text.splitlines()
    return printable(lines[-1].strip()[:_LINE_CHARACTERS]) if lines else ""
