"""fio's JSON of one group, read line by line: its own layout, two blanks a level, is all it prints.

Names and arithmetic are LKP's; an operation that the job did not do has no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.percentile import has_enough
from swingbot_jobs.reading.result import ParseError

JOB = re.compile(r' {6}"jobname" : ".{0,200}",')
ERROR = re.compile(r' {6}"error" : (\d{1,9}),')
SECTION = re.compile(r' {6}"(\w{1,40})" : \{')
INNER = re.compile(r' {8}"(\w{1,40})" : \{')
NUMBER = re.compile(r' {8}"(bw|iops|total_ios)" : (\d{1,15}(?:\.\d{1,9})?),')
P99 = re.compile(r' {12}"99\.000000" : (\d{1,15}),')
READS, WRITES = {"read", "randread", "rw", "randrw"}, {"write", "randwrite", "rw", "randrw"}


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return bandwidth, operations a second and the 99th percentile of reads and of writes.

    Raises ParseError without one whole group that did what the job says, without errors.
    """
    lines = [line.rstrip()[:300] for line in files.get("stdout", "").splitlines()]
    jobs = sum(1 for line in lines if JOB.fullmatch(line))
    if jobs != 1 or "}" not in lines[-1:]:
        raise ParseError(f"fio printed {jobs} groups, or not all of them; expected one")
    errors = [match[1] for line in lines if (match := ERROR.fullmatch(line))]
    if errors != ["0"]:
        raise ParseError(f"fio reports the error {', '.join(errors) or 'unknown'}")
    found = _numbers(lines)
    samples: dict[str, float | list[float]] = {}
    for done, kinds in (("read", READS), ("write", WRITES)):
        numbers = found.get(done, {})
        if numbers.get("total_ios", 0) > 0 and numbers.get("bw", 0) > 0:
            samples[f"{done}_bw_MBps"] = numbers["bw"] / 1024
            if numbers.get("iops", 0) > 0:
                samples[f"{done}_iops"] = numbers["iops"]
            if "p99" in numbers and has_enough(99, int(numbers["total_ios"])):
                samples[f"{done}_clat_99%_ns"] = numbers["p99"]
        elif params.get("rw") in kinds:
            raise ParseError(f"fio did no {done}")
    if not samples:
        raise ParseError("fio did nothing")
    return samples


def _numbers(lines: list[str]) -> dict[str, dict[str, float]]:
    """Return the numbers of each section of the group by name."""
    found: dict[str, dict[str, float]] = {}
    section = inner = ""
    for line in lines:
        if match := SECTION.fullmatch(line):
            section, inner = match[1], ""
        elif match := INNER.fullmatch(line):
            inner = match[1]
        elif match := NUMBER.fullmatch(line):
            found.setdefault(section, {}).setdefault(match[1], float(match[2]))
        elif (match := P99.fullmatch(line)) and inner == "clat_ns":
            found.setdefault(section, {}).setdefault("p99", float(match[1]))
    return found
