"""Recorded outputs with an odd number, a torn line or a repeated line: what is not understood is
missing, and no value is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from swingbot_jobs.reading.parse import parse_run
from swingbot_jobs.reading.result import ParseError
from tests.contract.labs import ROOT
from tests.programs import PROGRAMS

LINES = 60  # of an output that are changed, one at a time
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
# The inputs of other programs are in test_raw_output.py.
MUTATED = (
    *("anon-touch", "fio", "huge-pages", "kbuild", "memcg", "memory-idle", "page-cache"),
    *("page-fault", "perf-bench-epoll", "perf-bench-futex", "perf-bench-sched-messaging"),
    *("perf-bench-sched-pipe", "perf-bench-syscall", "pgbench", "redis", "stress-ng", "vma-storm"),
)


def recorded(program: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Return the outputs with a result, and their parameters."""
    for raw in sorted((ROOT / "jobs" / "programs" / program / "samples").glob("*.raw")):
        expected = json.loads(raw.with_suffix(".expected.json").read_text())
        stdout = raw / "stdout" if raw.is_dir() else raw
        if "samples" in expected:
            yield stdout.read_text(), expected.get("params", {})


def changed(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for at in [at for at, line in enumerate(lines) if NUMBER.search(line)][:LINES]:
        line = lines[at]
        torn = [f"{line[: len(line) // 2]}[   12.345678] a message", line[len(line) // 2 :]]
        others = [torn, [line, line]]
        for number in NUMBER.finditer(line):
            for word in ("nan", "inf", "1.5e+03", number[0].replace(".", ",")):
                others.append([f"{line[: number.start()]}{word}{line[number.end() :]}"])
        for other in others:
            yield "\n".join([*lines[:at], *other, *lines[at + 1 :], ""])


@pytest.mark.parametrize("program", MUTATED)
def test_a_number_that_is_not_understood_is_missing(program: str) -> None:
    refused = 0
    for text, params in recorded(program):
        right = parse_run(program, {"stdout": text}, params, PROGRAMS)
        for other in changed(text):
            try:
                found = parse_run(program, {"stdout": other}, params, PROGRAMS)
            except ParseError:
                refused += 1
                continue
            assert found.items() <= right.items(), other
    assert refused
