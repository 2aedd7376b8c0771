"""/proc/meminfo, with the Memused and max_used_kB that LKP adds."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Return every snapshot, with LKP's keys."""
    return snapshots.with_used(snapshots.read_snapshots(text, snapshots.key_values))


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the mean of each line over the snapshots. Raises ParseError without a snapshot."""
    readings = series(files.get("meminfo", ""))
    return dict(snapshots.stood(readings))
