"""perf stat around a run, in any of the forms that `swingbot_jobs.reading.perf_stat` reads."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading.perf_stat import read_perf_stat


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return counts by event; empty if perf could count none of them.

    Raises ParseError without perf output.
    """
    return {
        event: count.value for event, count in read_perf_stat(files.get("perf-stat", "")).items()
    }
