"""The options of the kernel that unit jobs need: those of their programs and monitors, of the
memory that they ask for, and of the facts and counters that they demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from swingbot_jobs.contract import memory
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program

# The option that a fact, sysctl or counter needs, by the beginning of its name.
_OPTIONS: Final[Mapping[str, str]] = {
    memory.COUNTED: "VM_EVENT_COUNTERS",
    f"{memory.COUNTED}thp_": "TRANSPARENT_HUGEPAGE",
    f"{memory.COUNTED}compact_": "COMPACTION",
    f"{memory.COUNTED}pgmigrate_": "MIGRATION",
    f"{memory.COUNTED}numa_": "NUMA",
    f"{memory.COUNTED}pswp": "SWAP",
    f"{memory.COUNTED}zswp": "ZSWAP",
    f"{memory.COUNTED}htlb_": "HUGETLBFS",
    f"{memory.COUNTED}cow_ksm": "KSM",
    "thp_": "TRANSPARENT_HUGEPAGE",
    "khugepaged_": "TRANSPARENT_HUGEPAGE",
    "shmem_enabled": "TRANSPARENT_HUGEPAGE",
    "hugepages": "HUGETLBFS",
    "ksm": "KSM",
    "lru_gen": "LRU_GEN",
    "kernel.numa_balancing": "NUMA_BALANCING",
    "vm.nr_hugepages": "HUGETLBFS",
    "vm.compact": "COMPACTION",
}


def kconfig_needs(
    unit_jobs: Iterable[UnitJob], programs: Mapping[str, Program]
) -> dict[str, tuple[str, ...]]:
    """Return the options that must be =y, by what needs them: `program netperf`, `swap: zram`,
    `demand lru_gen: 7`, `sysctl vm.compaction_proactiveness`.

    Programs that are not in `programs` need nothing here.
    """
    needs: dict[str, list[str]] = {}
    for job in unit_jobs:
        for name in (job.program, *job.monitors):
            if program := programs.get(name):
                needs.setdefault(f"program {name}", []).extend(program.options(job.params))
        asked = memory.asked(job.params)
        if pages := job.params.get(memory.HUGEPAGES):
            asked[memory.HUGEPAGES] = pages
        for name, value in asked.items():
            needs.setdefault(f"{name}: {value}", []).extend(memory.kconfig_needed({name: value}))
        for name, value in job.demand.items():
            if options := _options_of(name):
                needs.setdefault(f"demand {name}: {value}", []).extend(options)
        for name in job.sysctl:
            if options := _options_of(name):
                needs.setdefault(f"sysctl {name}", []).extend(options)
    return {who: tuple(dict.fromkeys(options)) for who, options in needs.items()}


def _options_of(name: str) -> list[str]:
    return [option for start, option in _OPTIONS.items() if name.startswith(start)]
