"""hackbench's output, with LKP's names and arithmetic.

kB = tasks * messages * bytes >> 10 counts senders and receivers, so it is about twice what really moves; it is kept,
because `hackbench.throughput` has meant that since its first report. The best iteration counts, not the mean.

Where LKP ran several instances at once (`Instance: N`; we do not), each has numbers of its own, and those of all take the best time of any with
the messages of the last, as LKP's do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from swingbot_jobs.reading.result import ParseError

INSTANCE = re.compile(r"Instance: (\d{1,4})")
TASKS = re.compile(
    r"Running in \w+ mode with \d{1,9} groups using \d{1,9} file descriptors each \(== (\d{1,9}) tasks\)"
)
MESSAGES = re.compile(r"Each sender will pass (\d{1,9}) messages of (\d{1,9}) bytes")
TIME = re.compile(r"Time: (\d{1,9}(?:\.\d{1,9})?)")


@dataclass
class Instance:
    """What the lines of one instance say: tasks, bytes that each sender sends, seconds of each iteration."""

    tasks: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def kb(self) -> int:
        if len(set(self.tasks)) != 1 or len(set(self.sizes)) != 1:
            raise ParseError(
                "hackbench did not say, or not always the same, how many tasks and messages there were"
            )
        if (kb := self.tasks[0] * self.sizes[0] >> 10) == 0:
            raise ParseError("hackbench passed less than 1 kB: give it more loops")
        return kb


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Throughput of one run in KB/s; ParseError when an iteration gave no time."""
    instances = read(files.get("stdout", ""))
    times = [time for instance in instances.values() for time in instance.times]
    if not times:
        raise ParseError("hackbench gave no time")
    expected = params.get("iterations", "")
    if expected.isdecimal() and len(times) != int(expected):
        raise ParseError(f"{len(times)} of {int(expected)} hackbench iterations gave a time")
    silent = [number for number, instance in instances.items() if not instance.times]
    if silent:
        raise ParseError(
            f"{len(silent)} of {len(instances)} hackbench instances gave no time (the first: {silent[0]})"
        )
    if min(times) <= 0:
        raise ParseError(
            "hackbench took less than its clock can tell (0.000 s): give it more loops"
        )
    found = rates("", list(instances.values())[-1].kb(), times)
    if len(instances) > 1:
        for number, instance in sorted(instances.items()):
            found |= rates(f".instance{number}", instance.kb(), instance.times)
    return dict(found)


def read(text: str) -> dict[int, Instance]:
    """The instances by number, in the order in which they spoke; one that is not numbered is 1."""
    instances: dict[int, Instance] = {}
    number = 1
    for line in text.splitlines():
        line = line.strip()[:500]
        if match := INSTANCE.fullmatch(line):
            number = int(match[1])
        elif match := TASKS.fullmatch(line):
            instances.setdefault(number, Instance()).tasks.append(int(match[1]))
        elif match := MESSAGES.fullmatch(line):
            instances.setdefault(number, Instance()).sizes.append(int(match[1]) * int(match[2]))
        elif match := TIME.fullmatch(line):
            instances.setdefault(number, Instance()).times.append(float(match[1]))
    return instances


def rates(suffix: str, kb: int, times: list[float]) -> dict[str, float]:
    return {
        f"throughput{suffix}": kb / min(times),
        f"throughput_avg{suffix}": round(kb / (sum(times) / len(times)), 2),
        f"throughput_worst{suffix}": kb / max(times),
    }
