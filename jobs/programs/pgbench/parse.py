"""pgbench's summary and the latencies of its log.

`run` prints the log as lines `latency US us COUNT` in increasing order. Up to version 13 tps
excludes the time to connect "(excluding connections establishing)", later "(without initial
connection time)".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from swingbot_jobs.reading.percentile import has_enough
from swingbot_jobs.reading.result import ParseError

TPS = re.compile(
    r"tps = (?P<tps>\d{1,12}\.\d{1,9})"
    r" \((?:without initial connection time|excluding connections establishing)\)"
)
DONE = re.compile(
    r"number of transactions actually processed: (?P<done>\d{1,12})/(?P<wanted>\d{1,12})"
)
FAILED = re.compile(r"number of failed transactions: (?P<failed>\d{1,12}) .{1,40}")
LATENCY = re.compile(r"latency (?P<us>\d{1,12}) us (?P<count>\d{1,12})")


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return transactions a second and percentiles of their latency in ms.

    Raises ParseError unless all transactions were made and are in the log.
    """
    lines = [line.strip()[:200] for line in files.get("stdout", "").splitlines()]
    rates = [match for line in lines if (match := TPS.fullmatch(line))]
    done = [match for line in lines if (match := DONE.fullmatch(line))]
    if len(rates) != 1 or len(done) != 1 or float(rates[0]["tps"]) == 0:
        raise ParseError(f"pgbench printed {len(rates)} rates, expected one")
    made, wanted = int(done[0]["done"]), int(done[0]["wanted"])
    failed = sum(int(match["failed"]) for line in lines if (match := FAILED.fullmatch(line)))
    if made != wanted or failed:
        raise ParseError(f"{made} of {wanted} transactions were made, {failed} failed")
    each, clients = params.get("transactions", ""), params.get("n_client", "")
    if each.isdecimal() and clients.isdecimal() and wanted != int(each) * int(clients):
        raise ParseError(f"pgbench made {wanted} transactions, not {int(each) * int(clients)}")
    latencies = [
        (int(match["us"]), int(match["count"]))
        for line in lines
        if (match := LATENCY.fullmatch(line))
    ]
    logged = sum(count for _, count in latencies)
    if logged != made or any(a >= b for (a, _), (b, _) in pairwise(latencies)):
        raise ParseError(f"{logged} of {made} transactions are in the log")
    samples: dict[str, float | list[float]] = {"tps": float(rates[0]["tps"])}
    for percent in (50, 99):
        if has_enough(percent, made):
            samples[f"p{percent}_ms"] = _percentile(latencies, percent, made) / 1000
    return samples


def _percentile(latencies: list[tuple[int, int]], percent: int, values: int) -> int:
    """Return the smallest value that at least `percent` of the values do not exceed."""
    below = 0
    for us, count in latencies:
        below += count
        if below * 100 >= percent * values:
            return us
    raise ParseError("no latency in the log")
