"""hackbench's output, with LKP's names and arithmetic.

kB = tasks * messages * bytes >> 10 counts senders and receivers, so it is about twice what really moves; it is kept,
because `hackbench.throughput` has meant that since its first report. The best iteration counts, not the mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.result import ParseError

TASKS = re.compile(r"Running in \w+ mode with \d{1,9} groups using \d{1,9} file descriptors each \(== (\d{1,9}) tasks\)")
MESSAGES = re.compile(r"Each sender will pass (\d{1,9}) messages of (\d{1,9}) bytes")
TIME = re.compile(r"Time: (\d{1,9}(?:\.\d{1,9})?)")


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Throughput of one run in KB/s; ParseError when an iteration gave no time."""
    lines = [line.strip()[:500] for line in files.get("stdout", "").splitlines()]
    tasks = {int(match[1]) for line in lines if (match := TASKS.fullmatch(line))}
    sizes = {int(match[1]) * int(match[2]) for line in lines if (match := MESSAGES.fullmatch(line))}
    times = [float(match[1]) for line in lines if (match := TIME.fullmatch(line))]
    expected = params.get("iterations", "")
    if not times:
        raise ParseError("hackbench gave no time")
    if expected.isdecimal() and len(times) != int(expected):
        raise ParseError(f"{len(times)} of {int(expected)} hackbench iterations gave a time")
    if len(tasks) != 1 or len(sizes) != 1:
        raise ParseError("hackbench did not say, or not always the same, how many tasks and messages there were")
    if min(times) <= 0:
        raise ParseError("hackbench took less than its clock can tell (0.000 s): give it more loops")
    kb = tasks.pop() * sizes.pop() >> 10
    if kb == 0:
        raise ParseError("hackbench passed less than 1 kB: give it more loops")
    return {
        "throughput": kb / min(times),
        "throughput_avg": round(kb / (sum(times) / len(times)), 2),
        "throughput_worst": kb / max(times),
    }
