"""/proc/softirqs: number of softirqs during the run, summed over all CPUs."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading import snapshots


def series(text: str) -> list[dict[str, float]]:
    """Return every snapshot, with LKP's keys."""
    return snapshots.read_snapshots(text, snapshots.softirqs)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the increase of each kind, summed over the CPUs.

    Raises ParseError without a snapshot, or if the CPUs changed.
    """
    readings = series(files.get("softirqs", ""))
    return dict(snapshots.grown_on_all_cpus(readings))
