"""`redis-benchmark --csv`, rates with LKP's names.

Up to redis 6.0 a row has the rate alone; later ones have a header and latencies in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.percentile import has_enough
from swingbot_jobs.reading.result import ParseError

_NUMBER = r'"(\d{1,12}\.\d{2,3})"'
HEAD = (
    '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms",'
    '"p99_latency_ms","max_latency_ms"'
)
ROW = re.compile(rf'"(?P<test>SET|GET|LPUSH|LPOP)",{_NUMBER}(?:,{",".join([_NUMBER] * 6)})?')
RATES = {"SET": "set_total_throughput_rps", "GET": "get_total_throughput_rps"}


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return requests a second and, where redis prints them, percentiles in ms.

    Raises ParseError unless each test has exactly one row.
    """
    lines = [line.rstrip()[:400] for line in files.get("stdout", "").splitlines()]
    rows = [match for line in lines if (match := ROW.fullmatch(line))]
    wanted = sorted(params.get("test", "").upper().split(",")) if params.get("test") else []
    found = sorted(match["test"] for match in rows)
    if not rows or (wanted and found != wanted) or len(set(found)) != len(found):
        raise ParseError(f"redis-benchmark printed {len(rows)} of {len(wanted) or 1} results")
    named, of_table = HEAD in lines, [line for line in lines if line.startswith('"')]
    if len(of_table) != len(rows) + named or any(bool(match[3]) != named for match in rows):
        raise ParseError("redis-benchmark printed columns that are not known")
    samples: dict[str, float | list[float]] = {}
    for match in rows:
        rate = float(match[2])
        if rate <= 0:
            raise ParseError(f"redis-benchmark printed a rate of 0 for {match['test']}")
        samples[RATES.get(match["test"], match["test"])] = rate
        if named:
            samples |= _percentiles(match, params.get("requests", ""))
    return samples


def _percentiles(match: re.Match[str], requests: str) -> dict[str, float]:
    name = match["test"].lower()
    found = {f"{name}_p50_ms": float(match[5])}
    if requests.isdecimal() and has_enough(99, int(requests)):
        found[f"{name}_p99_ms"] = float(match[7])
    return found
