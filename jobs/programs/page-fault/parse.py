"""Output of swingbot's own page-fault program: one line of `key=value` words.

`faults` is the total of all tasks without the warm-up cycle; `seconds` runs from the start of the
first task to the end of the last. The rate is computed from them; the rounded rate that the program
prints is for people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError
from swingbot_jobs.reading.result_line import result_line

LINE = re.compile(
    r"page-fault: mode=(?P<mode>process|thread) tasks=(?P<tasks>\d{1,9})"
    r" cycles=\d{1,12} bytes=\d{1,15}"
    r" faults=(?P<faults>\d{1,15}) seconds=(?P<seconds>\d{1,9}\.\d{1,9})"
    r" faults_per_second=\d{1,15}\.\d{1,9}"
)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return page faults per second of each task. Raises ParseError without a complete result."""
    found = result_line("page-fault", LINE, files)
    tasks, faults, seconds = (
        int(found["tasks"]),
        int(found["faults"]),
        float(found["seconds"]),
    )
    expected = params.get("nr_task", "")
    if expected.isdecimal() and tasks != int(expected):
        raise ParseError(f"{tasks} of {int(expected)} page-fault tasks produced a result")
    if tasks < 1 or faults < 1 or seconds <= 0:
        raise ParseError("page-fault counted no faults, or no time passed")
    return {
        "per_thread_ops" if found["mode"] == "thread" else "per_process_ops": faults
        / seconds
        / tasks
    }
