"""`perf bench epoll`.

Of wait perf prints operations a second, of ctl each kind of operation in the whole runtime. Both
are means over the threads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

_SPREAD = r"\(\+-\s?(?P<spread>\d{1,9}\.\d{1,9})%\)"
BEGUN = re.compile(
    r"Run summary \[PID \d{1,10}\]: (?P<threads>\d{1,9}) threads"
    r" (?P<test>monitoring on|doing epoll_ctl ops) (?P<fds>\d{1,9}) file-descriptors"
    r" for (?P<seconds>\d{1,9}) secs\."
)
RATE = re.compile(
    rf"Averaged (?P<number>\d{{1,15}}) operations/sec {_SPREAD}, total secs = (?P<took>\d{{1,9}})"
)
CALLS = re.compile(rf"Averaged (?P<number>\d{{1,15}}) (?P<call>ADD|MOD|DEL) operations {_SPREAD}")
TESTS = {"wait": "monitoring on", "ctl": "doing epoll_ctl ops"}
CALLED = ["ADD", "DEL", "MOD"]


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the rate of a thread.

    Raises ParseError without one of the test, threads and descriptors that the job asked for.
    """
    lines = [line.strip()[:400] for line in files.get("stdout", "").splitlines()]
    begun = [match for line in lines if (match := BEGUN.fullmatch(line))]
    rates = [match for line in lines if (match := RATE.fullmatch(line))]
    calls = [match for line in lines if (match := CALLS.fullmatch(line))]
    if len(begun) != 1 or int(begun[0]["seconds"]) < 1:
        raise ParseError(f"perf bench epoll began {len(begun)} times, expected once")
    for name, was in (("nr_task", begun[0]["threads"]), ("nr_fds", begun[0]["fds"])):
        if params.get(name, was) != was:
            raise ParseError(f"perf bench epoll had {name} {was}, not {params[name]}")
    if begun[0]["test"] == TESTS["wait"]:
        found, name, seconds = rates, "ops/s", 1
        whole = len(rates) == 1 and not calls
    else:
        found, name, seconds = calls, "ctl_ops/s", int(begun[0]["seconds"])
        whole = sorted(match["call"] for match in calls) == CALLED and not rates
    if not whole or TESTS.get(params.get("test", ""), begun[0]["test"]) != begun[0]["test"]:
        raise ParseError(f"perf bench epoll printed {len(rates) + len(calls)} averages")
    if any(int(match["number"]) == 0 for match in found):
        raise ParseError("perf bench epoll printed an average of 0")
    return {
        name: sum(int(match["number"]) for match in found) / seconds,
        "stddev%": max(float(match["spread"]) for match in found),
    }
