"""vmstat of each memory node."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Return every snapshot, with LKP's keys."""
    return snapshots.read_snapshots(text, snapshots.node_values)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return values by node and name. Raises ParseError without a snapshot."""
    readings = series(files.get("numa-vmstat", ""))
    return dict(snapshots.vmstat(readings))
