"""/proc/buddyinfo: free blocks per node, zone and order, before and after."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Every snapshot under LKP's keys."""
    return snapshots.read_snapshots(text, snapshots.buddyinfo)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """The first snapshot under `before.`, the last under `after.`; ParseError without a snapshot."""
    found = series(files.get("buddyinfo", ""))
    return dict(snapshots.before_and_after(found))
