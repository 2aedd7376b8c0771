"""The options of the kernel that unit jobs need: those of their programs and monitors, and of the
memory that they ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from swingbot_jobs.contract import memory
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program


def kconfig_needs(
    unit_jobs: Iterable[UnitJob], programs: Mapping[str, Program]
) -> dict[str, tuple[str, ...]]:
    """Return the options that must be =y, by what needs them: `program netperf`, `swap: zram`.

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
    return {who: tuple(dict.fromkeys(options)) for who, options in needs.items()}
