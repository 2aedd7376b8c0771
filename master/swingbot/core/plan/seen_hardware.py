"""What follows when a kernel sees less of its testbox than the testbox file states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.visible_hardware import short_of

SEES: Final = "the kernel sees "  # how the reason of runs begins that lack hardware


def whole(testbox: Testbox, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that say something about the machine: a kernel that sees or is given less
    than the file states says nothing about the number of its CPUs and the size of its memory.
    """
    bare = {name: value for name, value in facts.items() if name != "cmdline"}
    if short_of(testbox, bare) is None:
        return dict(facts)
    return {name: value for name, value in facts.items() if name not in ("nr_cpu", "memory_kb")}


def invalid_reason(testbox: Testbox, lacking: str, *, anchor: bool, before: bool) -> str:
    """Return why the runs of a boot that lacks hardware are invalid.

    `anchor`: its kernel is one that is known to see all; `before`: other kernels saw all.
    """
    if anchor:
        who = (
            "and it is the kernel of the anchor, so look at the machine (firmware, memory modules),"
            f" or correct {testbox.name}.yaml"
        )
    elif before:
        who = (
            "and other kernels saw all, so this kernel or its configuration lacks them"
            " (CONFIG_NR_CPUS, NUMA, X2APIC)"
        )
    else:
        who = (
            f"and no kernel has seen all: correct {testbox.name}.yaml or the configuration"
            " (CONFIG_NR_CPUS, NUMA, X2APIC), or look at the machine"
        )
    return f"{SEES}{lacking} of testbox {testbox.name}, {who}"
