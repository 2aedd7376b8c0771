"""The last line of dbench and tbench, which print the same, with LKP's names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

LINE = re.compile(
    r"Throughput (?P<rate>\d{1,9}(?:\.\d{1,9})?) MB/sec"
    r" {1,2}(?P<clients>\d{1,9}) clients {1,2}(?P<procs>\d{1,9}) procs"
    r" {1,2}max_latency=(?P<latency>\d{1,12}\.\d{3}) ms"
)


def read_dbench(
    program: str, files: Mapping[str, str], params: Mapping[str, str]
) -> dict[str, float | list[float]]:
    """Return throughput in MB/s and the longest operation in ms, as `program` printed them.

    Raises ParseError without exactly one result of as many clients as asked for.
    """
    lines = files.get("stdout", "").splitlines()
    found = [match for line in lines if (match := LINE.fullmatch(line.rstrip()[:300]))]
    if len(found) != 1:
        raise ParseError(f"{program} printed {len(found)} results, expected one")
    wanted = params.get("nr_threads", "")
    if wanted.isdecimal() and int(wanted) != int(found[0]["clients"]):
        raise ParseError(f"{program} had {found[0]['clients']} clients, not {wanted}")
    if float(found[0]["rate"]) == 0:
        raise ParseError(f"{program} printed a throughput of 0")
    return {
        "throughput_MB/s": float(found[0]["rate"]),
        "max_latency": float(found[0]["latency"]),
        "clients": float(found[0]["clients"]),
        "procs": float(found[0]["procs"]),
    }
