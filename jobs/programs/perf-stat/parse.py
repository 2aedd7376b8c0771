"""perf stat around a run, in any of the forms that `swingbot_jobs.reading.perf_stat` reads."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading.perf_stat import RUNNING, read_perf_stat


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return counts by event, and the running share of those that perf extrapolated; empty if it
    could count none of them.

    Raises ParseError without perf output.
    """
    counts = read_perf_stat(files.get("perf-stat", ""))
    shares = {
        RUNNING + event: one.running_pct for event, one in counts.items() if one.running_pct < 100
    }
    return {**{event: count.value for event, count in counts.items()}, **shares}
