"""`perf bench futex`, with LKP's names.

LKP adds up nothing: the rate is that of one thread. perf prints the threads that it has started
with the averages of wake and requeue, and in its first line for the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

_SPREAD = r"\(\+-\s?(?P<spread>\d{1,9}\.\d{1,9})%\)"
RATE = re.compile(
    rf"Averaged (?P<number>\d{{1,15}}) operations/sec {_SPREAD}, total secs = \d{{1,9}}"
)
WOKEN = re.compile(
    r"(?P<what>Wokeup|Requeued) (?P<done>\d{1,9}) of (?P<threads>\d{1,9}) threads in"
    rf" (?P<number>\d{{1,9}}\.\d{{1,9}}) ms {_SPREAD}"
)
BEGUN = re.compile(r"Run summary \[PID \d{1,10}\]: (?P<threads>\d{1,9}) threads\b.{1,200}")
NAMES = {"Wokeup": "wokeup_time_ms", "Requeued": "requeued_time_ms"}


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the rate of a thread, or the mean time of a round in ms.

    Raises ParseError without one, or if not all threads took part.
    """
    lines = [line.strip()[:400] for line in files.get("stdout", "").splitlines()]
    found = [match for line in lines if (match := RATE.fullmatch(line) or WOKEN.fullmatch(line))]
    if len(found) != 1:
        raise ParseError(f"perf bench futex printed {len(found)} averages, expected one")
    given = found[0].groupdict()
    begun = [match["threads"] for line in lines if (match := BEGUN.fullmatch(line))]
    threads = given.get("threads") or (begun[0] if begun else "")
    if "threads" in given and given["done"] != threads:
        raise ParseError(f"{given['done']} of {threads} threads were woken or requeued")
    if (wanted := params.get("nr_task", "")).isdecimal() and threads != wanted:
        raise ParseError(f"perf bench futex had {threads or 'no'} threads, not {wanted}")
    if float(given["number"]) <= 0:
        raise ParseError("perf bench futex printed an average of 0")
    return {
        NAMES.get(given.get("what", ""), "ops/s"): float(given["number"]),
        "stddev%": float(given["spread"]),
    }
