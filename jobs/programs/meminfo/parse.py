"""/proc/meminfo, with the Memused and max_used_kB that LKP adds."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Every snapshot under LKP's keys."""
    return snapshots.with_used(snapshots.read_snapshots(text, snapshots.key_values))


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """The mean of each line over the snapshots; ParseError without a snapshot."""
    found = series(files.get("meminfo", ""))
    return dict(snapshots.stood(found))
