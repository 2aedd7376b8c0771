"""What a kernel sees of its testbox, against the testbox file and the kernel's command line. Pure.

The master checks every boot with it, `swingbot-worker adopt` the boot that proves a new file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

from swingbot_jobs.testbox.definition import ClusterDriver, Testbox

# Firmware, kernel and crash kernel keep a part of the memory, of a small machine a larger one.
MEMORY_SHARE: Final = 0.75
# fact -> noun, and the size of its unit
_UNITS: Final = {
    "nr_cpu": ("CPUs", 1),
    "nr_node": ("NUMA nodes", 1),
    "memory_kb": ("MiB of memory", 1024),
}
_SIZE: Final = re.compile(r"(\d{1,15})([KMGT]?)", re.I)
_SIZES: Final = {"": 1 / 1024, "K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3}


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleHardware:
    """One kind of hardware: what a kernel sees, and what the file and the command line leave it.

    `fact` is its name in jobs/schema/facts.yaml; `seen` is 0 if the boot does not report it,
    `expected` is 0 if the file does not state it. Memory is in kB.
    """

    fact: str
    seen: float
    expected: float
    stated: float  # by the file, whatever the command line leaves of it

    @property
    def lacking(self) -> bool:
        """Return whether the kernel sees less than it should; False if it does not say."""
        return 0 < self.seen < self.expected * self._share

    @property
    def more(self) -> bool:
        """Return whether the kernel sees more than the file states."""
        return 0 < self.stated < self.seen * self._share

    def __str__(self) -> str:
        """Return what is seen of it, such as `8 of 128 CPUs`."""
        return f"{self.amount(self.seen)} of {self.amount(self.expected)} {self.noun}"

    def amount(self, number: float) -> str:
        """Return a number of it as text, in the unit of `noun`."""
        return f"{number / _UNITS[self.fact][1]:.0f}"

    @property
    def noun(self) -> str:
        return _UNITS[self.fact][0]

    @property
    def _share(self) -> float:
        return MEMORY_SHARE if self.fact == "memory_kb" else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Most:
    """What a command line leaves of a machine."""

    cpus: float = inf
    siblings: bool = True
    nodes: float = inf
    memory_kb: float = inf


def visible(testbox: Testbox, facts: Mapping[str, Any]) -> list[VisibleHardware]:
    """Return CPUs, NUMA nodes and memory that the kernel of a boot with these facts sees.

    Empty for a cluster, which has two machines.
    """
    if isinstance(testbox.driver, ClusterDriver):
        return []
    most = _most(str(facts.get("cmdline", "")))
    # the file may count the siblings that the command line switches off
    cpus = testbox.nr_cpu if most.siblings else testbox.nr_cpu // 2
    nodes, memory = testbox.nr_node or 0, testbox.memory_mb * 1024.0
    return [
        VisibleHardware(
            fact=fact, seen=_number(facts, fact), expected=min(most_of, left), stated=stated
        )
        for fact, stated, most_of, left in (
            ("nr_cpu", testbox.nr_cpu, cpus, most.cpus),
            ("nr_node", nodes, nodes, most.nodes),
            ("memory_kb", memory, memory, most.memory_kb),
        )
    ]


def short_of(testbox: Testbox, facts: Mapping[str, Any]) -> str | None:
    """Return what the kernel of a boot with these facts sees less of than the testbox file states
    and its command line asks for; None if it sees all.

    Facts that the boot lacks are not judged, nor is a cluster.
    """
    return ", ".join(str(one) for one in visible(testbox, facts) if one.lacking) or None


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
