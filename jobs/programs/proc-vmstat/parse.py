"""/proc/vmstat: the increase of counters (pgfault, allocstall_*, compact_*),
the mean of gauges (nr_free_pages).
"""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Return every snapshot, with LKP's keys."""
    return snapshots.read_snapshots(text, snapshots.key_values)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the increase of each counter and the mean of each gauge.

    Raises ParseError without a snapshot.
    """
    readings = series(files.get("proc-vmstat", ""))
    return dict(snapshots.vmstat(readings))
