"""/proc/softirqs: how many there were during the run, on all CPUs together."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Every snapshot under LKP's keys."""
    return snapshots.read_snapshots(text, snapshots.softirqs)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """What each kind grew by, summed over the CPUs; ParseError without a snapshot."""
    found = series(files.get("softirqs", ""))
    return dict(snapshots.chosen(snapshots.grown(found), lambda key: not key.startswith("CPU")))
