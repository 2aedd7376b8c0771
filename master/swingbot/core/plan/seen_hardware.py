"""What a kernel sees of its testbox, against the testbox file and the kernel's command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

from swingbot_jobs.testbox.definition import ClusterDriver, Testbox

# Firmware, kernel and crash kernel keep a part of the memory, of a small machine a larger one.
MEMORY_SHARE: Final = 0.75
SEES: Final = "the kernel sees "  # how the reason of runs begins that lack hardware
_SIZE: Final = re.compile(r"(\d{1,15})([KMGT]?)", re.I)
_SIZES: Final = {"": 1 / 1024, "K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Most:
    """What a command line leaves of a machine."""

    cpus: float = inf
    siblings: bool = True
    nodes: float = inf
    memory_kb: float = inf


def short_of(testbox: Testbox, facts: Mapping[str, Any]) -> str | None:
    """Return what the kernel of a boot with these facts sees less of than the testbox file states
    and its command line asks for; None if it sees all.

    Facts that the boot lacks are not judged, nor is a cluster, which has two machines.
    """
    if isinstance(testbox.driver, ClusterDriver):
        return None
    most = _most(str(facts.get("cmdline", "")))
    # the file may count the siblings that the command line switches off
    cpus = min(testbox.nr_cpu if most.siblings else testbox.nr_cpu // 2, most.cpus)
    lacking = []
    if 0 < (seen := _number(facts, "nr_cpu")) < cpus:
        lacking.append(f"{seen:.0f} of {cpus:.0f} CPUs")
    nodes = min(testbox.nr_node or 0, most.nodes)
    if 0 < (seen := _number(facts, "nr_node")) < nodes:
        lacking.append(f"{seen:.0f} of {nodes:.0f} NUMA nodes")
    memory = min(testbox.memory_mb * 1024.0, most.memory_kb)
    if 0 < (seen := _number(facts, "memory_kb")) < MEMORY_SHARE * memory:
        lacking.append(f"{seen / 1024:.0f} of {memory / 1024:.0f} MiB of memory")
    return ", ".join(lacking) or None


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


def _most(cmdline: str) -> _Most:
    most = _Most()
    for word in cmdline.split():
        name, _, value = word.partition("=")
        if name in ("maxcpus", "nr_cpus", "possible_cpus") and value.isdecimal():
            most = replace(most, cpus=min(most.cpus, max(1.0, float(value[:6]))))
        elif name in ("nosmp", "nolapic", "noapic") or word == "acpi=off":
            most = replace(most, cpus=1.0)
        elif name == "nosmt" or value.endswith(",nosmt") or word.startswith("l1tf=full"):
            most = replace(most, siblings=False)
        elif word == "numa=off":
            most = replace(most, nodes=1.0)
        elif name == "mem" and (size := _SIZE.fullmatch(value)):
            kilobytes = float(size[1]) * _SIZES[size[2].upper()]
            most = replace(most, memory_kb=min(most.memory_kb, kilobytes))
        elif name == "memmap":  # how much of it is reserved depends on the machine's own map
            most = replace(most, memory_kb=0.0)
    return most


def _number(facts: Mapping[str, Any], name: str) -> float:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
