"""Output of swingbot's own page-cache: one line of `key=value` words.

Percentiles are those that the program computed from all operations of a run, where enough lie
beyond them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.percentile import has_enough
from swingbot_jobs.reading.result import ParseError
from swingbot_jobs.reading.result_line import result_line

LINE = re.compile(
    r"page-cache: test=(?P<test>read|truncate|mmap) bytes=(?P<bytes>\d{1,15})"
    r" loops=(?P<loops>\d{1,9}) operations=(?P<operations>\d{1,15})"
    r" seconds=(?P<seconds>\d{1,9}\.\d{1,9}) p50_ns=(?P<p50>\d{1,10}) p99_ns=(?P<p99>\d{1,10})"
)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the rate in KB/s and percentiles in us. Raises ParseError without a complete
    result.
    """
    line = result_line("page-cache", LINE, files)
    if line["test"] != params.get("test", line["test"]):
        raise ParseError(f"page-cache did {line['test']}, not {params['test']}")
    if (wanted := params.get("size", "")).isdecimal() and int(wanted) != int(line["bytes"]):
        raise ParseError(f"page-cache went over {line['bytes']} bytes, not {wanted}")
    kilobytes = int(line["bytes"]) / 1024 * int(line["loops"])
    operations, seconds = int(line["operations"]), float(line["seconds"])
    if kilobytes < 1 or operations < 1 or seconds <= 0:
        raise ParseError("page-cache did nothing, or no time passed")
    return {
        "throughput": kilobytes / seconds,
        **{
            f"latency_p{percent}": int(line[f"p{percent}"]) / 1000
            for percent in (50, 99)
            if has_enough(percent, operations)
        },
    }
