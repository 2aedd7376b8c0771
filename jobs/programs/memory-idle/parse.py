"""/proc/meminfo and the lines `System RAM` of /proc/iomem, in bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from swingbot_jobs.reading import snapshots
from swingbot_jobs.reading.result import ParseError

RANGE = re.compile(r"\s{0,20}(?P<first>[0-9a-f]{1,16})-(?P<last>[0-9a-f]{1,16}) : System RAM")
PARTS = {
    "slab": "Slab",
    "percpu": "Percpu",
    "page_tables": "PageTables",
    "kernel_stack": "KernelStack",
}
NEEDED = ("MemTotal", "MemFree", "Cached", "Buffers")


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return what is used and what of it. Raises ParseError without the whole table."""
    lines = files.get("stdout", "").splitlines()
    found = snapshots.key_values(line[:200] for line in lines)
    if missing := [name for name in NEEDED if name not in found]:
        raise ParseError(f"/proc/meminfo has no {missing[0]}")
    used = found["MemTotal"] - found["MemFree"] - found["Cached"] - found["Buffers"]
    if used <= 0:
        raise ParseError("/proc/meminfo says that more is free than there is")
    samples: dict[str, float | list[float]] = {"used": used * 1024}
    # zeros in place of addresses are shown to those without CAP_SYS_ADMIN
    if (reserved := _system_ram(lines) - found["MemTotal"] * 1024) > 0:
        samples["reserved"] = reserved
    return samples | {name: found[line] * 1024 for name, line in PARTS.items() if line in found}


def _system_ram(lines: Sequence[str]) -> int:
    """Return the bytes of `System RAM`; 0 if a range is not understood, or overlaps another."""
    named = [line[:200] for line in lines if "System RAM" in line]
    ranges = [
        (int(match["first"], 16), int(match["last"], 16))
        for line in named
        if (match := RANGE.fullmatch(line))
    ]
    ranges.sort()
    apart = all(before[1] < after[0] for before, after in pairwise(ranges))
    if len(ranges) < len(named) or not apart:
        return 0
    return sum(last - first + 1 for first, last in ranges)
