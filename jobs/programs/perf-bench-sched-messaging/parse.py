"""`perf bench sched messaging`: the time that all groups took."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

TASKS = re.compile(
    r"# (?P<groups>\d{1,6}) groups == (?P<tasks>\d{1,9}) (?P<mode>processes|threads) run"
)
TIME = re.compile(r"Total time: +(?P<number>\d{1,9}\.\d{3}) \[sec\]")
MODES = {"process": "processes", "threads": "threads"}


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the time in s. Raises ParseError without one of the groups that the job asked for."""
    lines = [line.strip()[:200] for line in files.get("stdout", "").splitlines()]
    tasks = [match for line in lines if (match := TASKS.fullmatch(line))]
    times = [match["number"] for line in lines if (match := TIME.fullmatch(line))]
    if len(tasks) != 1 or len(times) != 1:
        raise ParseError(f"perf bench sched messaging printed {len(times)} times, expected one")
    groups, mode = tasks[0]["groups"], tasks[0]["mode"]
    if params.get("nr_groups", groups) != groups or MODES.get(params.get("mode", ""), mode) != mode:
        raise ParseError(f"perf bench sched messaging ran {groups} groups of {mode}")
    if float(times[0]) == 0:
        raise ParseError("perf bench sched messaging took less time than its clock resolves")
    return {"total_time": float(times[0])}
