"""/proc/buddyinfo: free blocks and unusable free space index per node, zone and order."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import buddy, snapshots


def series(text: str) -> list[dict[str, float]]:
    """Return every snapshot, with LKP's keys."""
    return snapshots.read_snapshots(text, snapshots.buddyinfo)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Free blocks (`before.`, `after.`) and indices (`unusable_before.`, `unusable_after.`).

    `before` is the first snapshot, `after` the last. Raises ParseError without a snapshot.
    """
    readings = series(files.get("buddyinfo", ""))
    blocks = snapshots.before_and_after(readings)
    indices = snapshots.before_and_after([buddy.unusable(snapshot) for snapshot in readings])
    return {**blocks, **{f"unusable_{name}": index for name, index in indices.items()}}
