"""`perf bench syscall`, with LKP's names.

perf prints its numbers plainly, with thousands separated by commas since 6.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.perf_bench import agree
from swingbot_jobs.reading.result import ParseError

CALLS = re.compile(r"# Executed (?P<calls>[\d,]{1,20}) (?P<name>[a-z]{1,20})\(\) calls")
TIME = re.compile(r"Total time: +(?P<number>\d{1,9}\.\d{1,9}) \[sec\]")
PER_CALL = re.compile(r"(?P<number>\d{1,9}\.\d{1,9}) usecs/op")
RATE = re.compile(r"(?P<number>\d[\d,]{0,19}) ops/sec")
PARTS = {"total_time_sec": TIME, "usecs_per_op": PER_CALL, "ops_per_sec": RATE}


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return rate, time of a call in us and of all in s. Raises ParseError without all of them."""
    lines = [line.strip()[:200] for line in files.get("stdout", "").splitlines()]
    calls = [match for line in lines if (match := CALLS.fullmatch(line))]
    if len(calls) != 1:
        raise ParseError(f"perf bench syscall printed {len(calls)} loops, expected one")
    done = calls[0]["calls"].replace(",", "")
    if (wanted := params.get("loop", "")).isdecimal() and done != wanted:
        raise ParseError(f"perf bench syscall made {done} calls, not {wanted}")
    found: dict[str, float] = {}
    for part, pattern in PARTS.items():
        values = [match["number"] for line in lines if (match := pattern.fullmatch(line))]
        if len(values) != 1:
            raise ParseError(
                f"perf bench syscall printed {part} {len(values)} times, expected once"
            )
        found[f"{calls[0]['name']}.{part}"] = float(values[0].replace(",", ""))
    rate, took = (found[f"{calls[0]['name']}.{part}"] for part in ("ops_per_sec", "usecs_per_op"))
    if rate == 0:
        raise ParseError("perf bench syscall printed a rate of 0")
    if not agree(rate, took):
        raise ParseError(f"perf bench syscall printed {rate:.0f} calls a second of {took} us each")
    return {**found}
