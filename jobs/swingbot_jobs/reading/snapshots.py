"""Snapshots of proc files, as written by light monitors and by LKP's monitors of the same names.

A file holds one or more snapshots, each after a line `time: SECONDS`; swingbot's holds two,
taken right before and right after a run. Keys are LKP's.
Gauges (free memory) become their mean over the snapshots, counters (page faults) their increase
from the first to the last. LKP takes the mean of some counters too (softirqs),
which depends on the time since boot and says nothing about the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from swingbot_jobs import limits
from swingbot_jobs.reading.result import ParseError

Snapshot = dict[str, float]
Reader = Callable[[Iterable[str]], Snapshot]


TIME: Final = re.compile(r"time:\s*(\d{1,12}(?:\.\d{1,12})?)\s*")
_NUMBER: Final = re.compile(r"\d{1,20}(?:\.\d{1,12})?")
_KEY_VALUE: Final = re.compile(r"(?P<key>\S{1,100}?):?\s+(?P<value>\d{1,20})(?:\s+\w{1,8})?\s*")
_BUDDY: Final = re.compile(
    r"Node\s+(?P<node>\d{1,5}),\s+zone\s+(?P<zone>\w{1,32})(?P<free>(?:\s+\d{1,20}){1,64})\s*"
)
_NODE_MEMINFO: Final = re.compile(
    r"Node\s+(?P<node>\d{1,5})\s+(?P<key>\S{1,100}?):?\s+(?P<value>\d{1,20})(?:\s+\w{1,8})?\s*"
)
_NODE: Final = re.compile(r"node:\s*(\d{1,5})\s*")
_CPU_KEY: Final = re.compile(r"CPU\d{1,5}\.")
# In place of the counts of all CPUs: each of them is 0.
_FOLDED: Final = "0*"
_CPUS: Final = re.compile(r"(?:\s*CPU\d{1,5}){1,10000}\s*")


def read_snapshots(text: str, reader: Reader) -> list[Snapshot]:
    """Return every snapshot by key. Raises ParseError without one or beyond a limit.

    Other lines are skipped.
    """
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if TIME.fullmatch(line[:100]):
            blocks.append([])
        elif len(line) <= limits.SNAPSHOT_LINE_CHARACTERS:
            blocks[-1].append(line)
    snapshots = [snapshot for block in blocks if (snapshot := reader(block))]
    if not snapshots:
        raise ParseError("has no snapshot: no line has this monitor's format")
    if len(snapshots) > limits.SNAPSHOTS or any(
        len(snapshot) > limits.SNAPSHOT_KEYS for snapshot in snapshots
    ):
        raise ParseError(
            f"more than {limits.SNAPSHOTS} snapshots, or than {limits.SNAPSHOT_KEYS} keys in one"
        )
    return snapshots


# --- increases and means --------------------------------------------------------------------------


def grown(snapshots: Sequence[Snapshot]) -> dict[str, float]:
    """Return the increase of each counter from the first snapshot to the last.

    Missing are keys that one of them lacks, and counters that decreased (reset,
    or a CPU went offline). With one snapshot all are.
    """
    if len(snapshots) < 2:
        return {}
    first, last = snapshots[0], snapshots[-1]
    return {
        key: last[key] - value for key, value in first.items() if key in last and last[key] >= value
    }


def stood(snapshots: Sequence[Snapshot]) -> dict[str, float]:
    """Return the mean of each gauge over the snapshots.

    Missing are keys that one of them lacks: the part of them that a cut snapshot still has is
    another time's.
    """
    return {
        key: sum(snapshot[key] for snapshot in snapshots) / len(snapshots)
        for key in snapshots[0]
        if all(key in snapshot for snapshot in snapshots)
    }


def grown_on_all_cpus(snapshots: Sequence[Snapshot]) -> dict[str, float]:
    """Return the increase of counters that the kernel prints by CPU, summed over the CPUs.

    Missing are those of which a CPU's decreased: it wrapped. Raises ParseError if a CPU went
    offline or came: the sum lost or gained what it had counted.
    """
    cpus = [{key.partition(".")[0] for key in one if _CPU_KEY.match(key)} for one in snapshots]
    if cpus[0] != cpus[-1]:
        raise ParseError("the CPUs of the table changed during the run")
    values = grown(snapshots)
    by_cpu = filter(_CPU_KEY.match, snapshots[0])
    fell = {key.partition(".")[2] for key in by_cpu if key not in values}
    return chosen(values, lambda key: not _CPU_KEY.match(key) and key not in fell)


def chosen(values: Mapping[str, float], wanted: Callable[[str], bool]) -> dict[str, float]:
    return {key: value for key, value in values.items() if wanted(key)}


# --- formats --------------------------------------------------------------------------------------


def key_values(lines: Iterable[str]) -> Snapshot:
    """`key value` and `Key:  value kB` (/proc/vmstat, /proc/meminfo).

    The first of duplicate keys counts, as in LKP.
    """
    snapshot: Snapshot = {}
    for line in lines:
        if match := _KEY_VALUE.fullmatch(line):
            snapshot.setdefault(match["key"], float(match["value"]))
    return snapshot


def buddyinfo(lines: Iterable[str]) -> Snapshot:
    """Free blocks by node, zone and order: `Node 0, zone Normal 4 1 ...` gives
    Node.0.zone.Normal.0, .1 ...
    """
    snapshot: Snapshot = {}
    for line in lines:
        if match := _BUDDY.fullmatch(line):
            for order, blocks in enumerate(match["free"].split()):
                snapshot[f"Node.{match['node']}.zone.{match['zone']}.{order}"] = float(blocks)
    return snapshot


def softirqs(lines: Iterable[str]) -> Snapshot:
    """Counts by CPU (`CPU0.NET_RX`) and summed over them (`NET_RX`)."""
    return _per_cpu(lines, lambda key, _: key, all_per_cpu=True)


def interrupts(lines: Iterable[str]) -> Snapshot:
    """Counts by CPU and summed, named as LKP names them: `0:IO-APIC.2-edge.timer`,
    `LOC:Local_timer_interrupts`, `ERR`.
    """
    return _per_cpu(lines, _interrupt, all_per_cpu=False)


def _interrupt(key: str, words: Sequence[str]) -> str:
    return (
        f"{key}:{('.' if key.isdecimal() else '_').join(words)}".replace(",.", ",")
        if words
        else key
    )


def _per_cpu(
    lines: Iterable[str], name: Callable[[str, Sequence[str]], str], *, all_per_cpu: bool
) -> Snapshot:
    """`all_per_cpu`: a lone number is the count of the only CPU.

    Otherwise it is the total of all CPUs, like ERR and MIS.
    """
    snapshot: Snapshot = {}
    cpus: list[str] = []
    for line in lines:
        key, colon, rest = line.strip().partition(":")
        if _CPUS.fullmatch(line):
            cpus = line.split()
        elif colon and key and not any(char.isspace() for char in key):
            words = rest.split()
            if cpus and words[:1] == [_FOLDED]:
                words = [*("0" for _ in cpus), *words[1:]]
            if not all_per_cpu and len(words) == 1 and _NUMBER.fullmatch(words[0]):
                snapshot[key] = float(words[0])
            elif (
                cpus
                and len(words) >= len(cpus)
                and all(_NUMBER.fullmatch(word) for word in words[: len(cpus)])
            ):
                full, counts = (
                    name(key, words[len(cpus) :]),
                    [float(word) for word in words[: len(cpus)]],
                )
                snapshot |= {
                    f"{cpu}.{full}": count for cpu, count in zip(cpus, counts, strict=True)
                } | {full: sum(counts)}
    return snapshot


def node_values(lines: Iterable[str]) -> Snapshot:
    """`key value` lines behind `node: N` (a node's vmstat and numastat): node0.nr_free_pages."""
    snapshot: Snapshot = {}
    node = ""
    for line in lines:
        if match := _NODE.fullmatch(line):
            node = match[1]
        elif node and (match := _KEY_VALUE.fullmatch(line)):
            snapshot.setdefault(f"node{node}.{match['key']}", float(match["value"]))
    return snapshot


def node_meminfo(lines: Iterable[str]) -> Snapshot:
    """`Node 0 MemFree: 1 kB` gives node0.MemFree."""
    snapshot: Snapshot = {}
    for line in lines:
        if match := _NODE_MEMINFO.fullmatch(line):
            snapshot.setdefault(f"node{match['node']}.{match['key']}", float(match["value"]))
    return snapshot


# --- which keys of vmstat are gauges --------------------------------------------------------------

# What the kernel only adds to, although it is called like a number of pages: events of pages
# (node_stat_item) and of the TLB (vm_event_item, all of which are counters).
_GROWING: Final = frozenset(
    {
        "nr_dirtied",
        "nr_written",
        "nr_throttled_written",
        "nr_vmscan_write",
        "nr_vmscan_immediate_reclaim",
        "nr_foll_pin_acquired",
        "nr_foll_pin_released",
        "nr_tlb_remote_flush",
        "nr_tlb_remote_flush_received",
        "nr_tlb_local_flush_all",
        "nr_tlb_local_flush_one",
    }
)


def is_vmstat_gauge(key: str) -> bool:
    """Return whether a name of /proc/vmstat (with or without `node0.`) is a gauge rather than a
    counter.
    """
    name = key.rpartition(".")[2]
    return name == "workingset_nodes" or (name.startswith("nr_") and name not in _GROWING)


def vmstat(snapshots: Sequence[Snapshot]) -> dict[str, float]:
    """Return /proc/vmstat or a node's: the increase of counters, the mean of gauges."""
    return chosen(grown(snapshots), lambda key: not is_vmstat_gauge(key)) | chosen(
        stood(snapshots), is_vmstat_gauge
    )


def with_used(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Snapshots of /proc/meminfo with LKP's Memused (MemTotal - MemFree) and max_used_kB (its
    maximum so far), in kB.
    """
    extended: list[Snapshot] = []
    highest = 0.0
    for snapshot in snapshots:
        used: Snapshot = {}
        if {"MemTotal", "MemFree"} <= snapshot.keys():
            now = snapshot["MemTotal"] - snapshot["MemFree"]
            highest = max(highest, now)
            used = {"Memused": now, "max_used_kB": highest}
        extended.append(snapshot | used)
    return extended


def before_and_after(snapshots: Sequence[Snapshot]) -> dict[str, float]:
    """The first snapshot under `before.` and, if there are several, the last under `after.`."""
    sides = {"before": snapshots[0]} | ({"after": snapshots[-1]} if len(snapshots) > 1 else {})
    return {
        f"{side}.{key}": value
        for side, snapshot in sides.items()
        for key, value in snapshot.items()
    }
