"""`perf bench sched pipe`, with LKP's name for its rate.

Thousands are separated by commas where perf does so for its system calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.perf_bench import agree
from swingbot_jobs.reading.result import ParseError

DONE = re.compile(
    r"# Executed (?P<loops>[\d,]{1,20}) pipe operations between two (?P<mode>processes|threads)"
)
PER_ROUND = re.compile(r"(?P<number>\d{1,9}\.\d{1,9}) usecs/op")
RATE = re.compile(r"(?P<number>\d[\d,]{0,19}) ops/sec")


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the rate. Raises ParseError unless the whole loop was done and has one."""
    lines = [line.strip()[:200] for line in files.get("stdout", "").splitlines()]
    done = [match["loops"].replace(",", "") for line in lines if (match := DONE.fullmatch(line))]
    rates = [match["number"].replace(",", "") for line in lines if (match := RATE.fullmatch(line))]
    took = [match["number"] for line in lines if (match := PER_ROUND.fullmatch(line))]
    if len(done) != 1 or len(rates) != 1 or len(took) != 1:
        raise ParseError(f"perf bench sched pipe printed {len(rates)} rates, expected one")
    if (wanted := params.get("loops", "")).isdecimal() and done[0] != wanted:
        raise ParseError(f"perf bench sched pipe went round {done[0]} times, not {wanted}")
    if int(rates[0]) == 0:
        raise ParseError("perf bench sched pipe printed a rate of 0")
    if not agree(float(rates[0]), float(took[0])):
        raise ParseError(
            f"perf bench sched pipe printed {rates[0]} rounds a second of {took[0]} us"
        )
    return {"ops_per_sec": float(rates[0])}
