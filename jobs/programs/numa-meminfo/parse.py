"""meminfo of each memory node."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Every snapshot under LKP's keys."""
    return snapshots.read_snapshots(text, snapshots.node_meminfo)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """By node and name; ParseError without a snapshot."""
    found = series(files.get("numa-meminfo", ""))
    return dict(snapshots.stood(found))
