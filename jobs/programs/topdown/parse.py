"""`perf stat -j -M TopdownL1` (Intel) or `PipelineL1` (AMD).

perf prints each metric behind one of its group's events, the others in lines of their own: on a
hybrid CPU the PMU of the event before says which kind of core a metric is of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs import limits
from swingbot_jobs.reading.result import ParseError

METRIC = re.compile(
    r'"metric-value"\s*:\s*"?(\d{1,9}(?:\.\d{1,9})?)"?,\s*"metric-unit"\s*:\s*"%\w{0,16}\s+'
    r'(?:tma_)?([a-z]\w{0,60})[^"\w]?[^"]{0,40}"'
)
EVENT = re.compile(r'"event"\s*:\s*"(?:(cpu_(?:core|atom|lowpower))/)?')


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return percent of the pipeline's slots by metric.

    Raises ParseError if perf printed no metric, as on a machine without them, printed one twice, or
    named the PMU of some only.
    """
    text = files.get("topdown", "")[: limits.PERF_STAT_CHARACTERS]
    found: dict[str, float | list[float]] = {}
    pmu = ""
    for line in text.splitlines():
        if len(line) > limits.PERF_STAT_LINE_CHARACTERS:
            continue
        if event := EVENT.search(line):
            pmu = f"{event[1]}." if event[1] else ""
        if metric := METRIC.search(line):
            name = pmu + metric[2]
            if name in found:
                raise ParseError(f"perf stat gives the metric {name!r} twice")
            found[name] = float(metric[1])
    if not found:
        raise ParseError(
            "perf counted no top-down metrics: the machine has none, or perf does not know them"
        )
    if len({"." in name for name in found}) > 1:
        raise ParseError("perf stat names the PMU of some top-down metrics and not of others")
    return found
