"""`perf stat -a -I`, with LKP's arithmetic: `i.*` are means over intervals,
`ps.*` and `overall.*` are of all but the last.
"""

from __future__ import annotations

from collections.abc import Mapping

from swingbot_jobs.reading.perf_interval import read_intervals, samples


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return one value per metric; the series stay in the file.

    Raises ParseError with fewer than two intervals.
    """
    return dict(samples(read_intervals(files.get("perf-stat-interval", ""))))
