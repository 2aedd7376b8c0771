"""`perf lock contention`: one line a stack, summed here by kind of lock and calling function."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

HEAD = re.compile(r"\s*contended\s+total wait\s+max wait\s+avg wait\s+type\s+caller\s*")
TIME = r"(\d{1,9}(?:\.\d{1,3})?) (ns|us|ms|s|m|h)"
ROW = re.compile(
    rf"\s*(?P<waits>\d{{1,15}})\s+{TIME}\s+{TIME}\s+{TIME}\s+(?P<kind>[\w:-]{{1,40}})\s+(?P<caller>[\w.$]{{1,200}})(?:\+0x[0-9a-f]{{1,16}})?\s*"
)
MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}
MAX_CALLERS = 500  # three numbers of each


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Waits and times by caller, and of all; ParseError without perf's table, whose having no row means that nobody waited."""
    lines = [line[:500] for line in files.get("lock-contention", "").splitlines()]
    if not any(HEAD.fullmatch(line) for line in lines):
        raise ParseError("perf lock printed no table")
    found: dict[str, float] = {"contended": 0.0, "total_wait_us": 0.0}
    callers: set[str] = set()
    for line in lines:
        if not (row := ROW.fullmatch(line)):
            continue
        waits, total, longest = (
            float(row["waits"]),
            float(row[2]) * MICROSECONDS[row[3]],
            float(row[4]) * MICROSECONDS[row[5]],
        )
        found["contended"] += waits
        found["total_wait_us"] += total
        who = f"{row['kind']}.{row['caller']}"
        callers.add(who)
        if len(callers) <= MAX_CALLERS:
            found[f"contended.{who}"] = found.get(f"contended.{who}", 0.0) + waits
            found[f"total_wait_us.{who}"] = found.get(f"total_wait_us.{who}", 0.0) + total
            found[f"max_wait_us.{who}"] = max(found.get(f"max_wait_us.{who}", 0.0), longest)
    return dict(found)
