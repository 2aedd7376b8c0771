"""/proc/vmstat: counters (pgfault, allocstall_*, compact_*) as they grew, gauges (nr_free_pages) by their mean."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Every snapshot under LKP's keys."""
    return snapshots.read_snapshots(text, snapshots.key_values)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """What each counter grew by, and the mean of each gauge; ParseError without a snapshot."""
    found = series(files.get("proc-vmstat", ""))
    return dict(snapshots.vmstat(found))
