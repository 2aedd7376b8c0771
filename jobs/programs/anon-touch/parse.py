"""Output of swingbot's own anon-touch: one line of `key=value` words.

Rates are of the bytes that one pass goes over. Percentiles are those that the program computed from
all accesses of a run, where enough lie beyond them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.percentile import has_enough
from swingbot_jobs.reading.result import ParseError
from swingbot_jobs.reading.result_line import result_line

_TIME = r"\d{1,9}\.\d{1,9}"
_NS = r"\d{1,10}"
LINE = re.compile(
    r"anon-touch: bytes=(?P<bytes>\d{1,15}) passes=(?P<passes>\d{1,9})"
    r" access=(?:seq|random) content=(?:same|mixed)"
    rf" touch_seconds=(?P<touch>{_TIME}) retouch_seconds=(?P<retouch>{_TIME})"
    rf" free_seconds=(?P<free>{_TIME})"
    rf" touch_p50_ns=(?P<touch_p50>{_NS}) touch_p99_ns=(?P<touch_p99>{_NS})"
    rf" retouch_p50_ns=(?P<retouch_p50>{_NS}) retouch_p99_ns=(?P<retouch_p99>{_NS})"
    rf" system_seconds=(?P<system>{_TIME}) major_faults=\d{{1,15}}"
)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return rates in KB/s, percentiles in us and system time in s.

    Raises ParseError without a complete result.
    """
    found = result_line("anon-touch", LINE, files)
    kilobytes, passes = int(found["bytes"]) / 1024, int(found["passes"])
    pages = int(kilobytes) // 4
    if (wanted := params.get("size", "")).isdecimal() and int(wanted) != int(found["bytes"]):
        raise ParseError(f"anon-touch went over {found['bytes']} bytes, not {wanted}")
    touch, retouch, free = (float(found[name]) for name in ("touch", "retouch", "free"))
    if kilobytes < 1 or passes < 1 or min(touch, retouch, free) <= 0:
        raise ParseError("anon-touch went over no memory, or no time passed")
    return {
        "throughput": kilobytes * (1 + passes) / (touch + retouch),
        "touch_throughput": kilobytes / touch,
        "retouch_throughput": kilobytes * passes / retouch,
        "free_throughput": kilobytes / free,
        "system_time": float(found["system"]),
        **{
            f"{phase}_p{percent}": int(found[f"{phase}_p{percent}"]) / 1000
            for phase, accesses in (("touch", pages), ("retouch", pages * passes))
            for percent in (50, 99)
            if has_enough(percent, accesses)
        },
    }
