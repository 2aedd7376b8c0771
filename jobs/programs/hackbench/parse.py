"""hackbench's output, with LKP's names and arithmetic.

kB = tasks * messages * bytes >> 10 counts senders and receivers, so it is about twice the data that
really moves. It is kept because `hackbench.throughput` has meant that since its first report.
The best iteration counts, not the mean.

hackbench that gets SIGTERM or SIGINT ends its children, prints the time until then and exits with
status 0: what it had passed by then is not known.

Where LKP ran several instances at once (`Instance: N`; swingbot does not),
each instance has its own numbers. The totals combine the best time of any instance with the
messages of the last one, as LKP's do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from swingbot_jobs.reading.result import ParseError

INSTANCE = re.compile(r"Instance: (\d{1,4})")
TASKS = re.compile(
    r"Running in \w+ mode with \d{1,9} groups"
    r" using \d{1,9} file descriptors each \(== (\d{1,9}) tasks\)"
)
MESSAGES = re.compile(r"Each sender will pass (\d{1,9}) messages of (\d{1,9}) bytes")
TIME = re.compile(r"Time: (\d{1,9}(?:\.\d{1,9})?)")
# Also what a child says whose peer was killed: `SENDER: write (error: Broken pipe)`.
ENDED = re.compile(
    r"signaling \d+ worker threads to terminate|longjmp'ed out|.*longjmp'ing out!"
    r"|(?>.*? \(error: ).*\)|.*\bfailed\b|(?:Killed|Terminated|Aborted|Segmentation fault)\b"
)


@dataclass
class Instance:
    """Output of one instance: tasks, bytes that each sender sends, seconds of each iteration."""

    tasks: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def kb(self) -> int:
        if len(set(self.tasks)) != 1 or len(set(self.sizes)) != 1:
            raise ParseError(
                "hackbench did not print the number of tasks and messages,"
                " or printed different ones"
            )
        if (kb := self.tasks[0] * self.sizes[0] >> 10) == 0:
            raise ParseError("hackbench passed less than 1 kB: give it more loops")
        return kb


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the throughput of one run in KB/s.

    Raises ParseError if an iteration printed no time.
    """
    for line in f"{files.get('stdout', '')}\n{files.get('stderr', '')}".splitlines():
        if ENDED.match(line.strip()[:200]):
            raise ParseError(f"hackbench was ended by a signal or an error: {line.strip()[:200]}")
    instances = read(files.get("stdout", ""))
    times = [time for instance in instances.values() for time in instance.times]
    if not times:
        raise ParseError("hackbench printed no time")
    expected = params.get("iterations", "")
    if expected.isdecimal() and len(times) != int(expected):
        raise ParseError(f"{len(times)} of {int(expected)} hackbench iterations printed a time")
    silent = [number for number, instance in instances.items() if not instance.times]
    if silent:
        raise ParseError(
            f"{len(silent)} of {len(instances)} hackbench instances printed no time (the first:"
            f" {silent[0]})"
        )
    begun = sum(len(instance.tasks) for instance in instances.values())
    if begun > len(times):
        raise ParseError(f"{len(times)} of {begun} hackbench iterations printed a time")
    if min(times) <= 0:
        raise ParseError(
            "hackbench took less time than its clock resolves (0.000 s): give it more loops"
        )
    metrics = rates("", list(instances.values())[-1].kb(), times)
    if len(instances) > 1:
        for number, instance in sorted(instances.items()):
            metrics |= rates(f".instance{number}", instance.kb(), instance.times)
    return dict(metrics)


def read(text: str) -> dict[int, Instance]:
    """Return the instances by number, in order of appearance; an unnumbered one is 1."""
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
