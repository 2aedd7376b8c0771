"""stress-ng's table of metrics, with LKP's names.

The columns behind the rate (`CPU used per instance`, then `RSS Max`) came with later versions; a
table with other columns is not read. A stressor that finished no operation has no rate, one that
did less than ten a second a time too: its rate has two decimals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from swingbot_jobs.reading.result import ParseError

PREFIX = re.compile(r"stress-ng: (?:info|metrc): {1,2}\[\d{1,10}\] (?P<text>.{1,300})")
HEAD = re.compile(
    r"stressor +bogo ops real time +usr time +sys time +bogo ops/s +bogo ops/s"
    r"(?P<share> CPU used per)?(?P<rss> +RSS Max)?"
)
UNITS = re.compile(
    r" +\(secs\) +\(secs\) +\(secs\) +\(real time\) +\(usr\+sys time\)"
    r"(?P<share> instance \(%\))?(?P<rss> +\(KB\))?"
)
_TIME = r"\d{1,9}\.\d{2}"
_RATE = r"\d{1,15}\.\d{2}"
ROW = re.compile(
    rf"(?P<name>[a-z][a-z0-9-]{{0,30}}) +(?P<ops>\d{{1,18}}) +(?P<real>{_TIME}) +{_TIME} +{_TIME}"
    rf" +(?P<rate>{_RATE}) +{_RATE}(?P<share> +{_RATE})?(?P<rss> +\d{{1,15}})?"
)
UNTRUSTED = re.compile(r"metrics[ -]untrustworthy: [1-9]\d{0,5}\b.{0,200}")


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return operations and operations a second of the stressor.

    Raises ParseError without exactly one row of a table that is understood, or if stress-ng does
    not trust it.
    """
    lines = [
        match["text"]
        for line in files.get("stdout", "").splitlines()
        if (match := PREFIX.fullmatch(line.rstrip()[:400]))
    ]
    heads = [(HEAD.fullmatch(one), UNITS.fullmatch(two)) for one, two in pairwise(lines)]
    tables = [
        _columns(head)
        for head, units in heads
        if head and units and _columns(head) == _columns(units)
    ]
    rows = [match for line in lines if (match := ROW.fullmatch(line))]
    if len(tables) != 1 or len(rows) != 1 or _columns(rows[0]) != tables[0]:
        raise ParseError(
            f"stress-ng printed {len(tables)} tables with known columns and {len(rows)} rows,"
            " expected one of each"
        )
    row = rows[0]
    if row["name"] != params.get("test", row["name"]):
        raise ParseError(f"stress-ng printed a row of {row['name']}, not of {params['test']}")
    if untrusted := [line for line in lines if UNTRUSTED.fullmatch(line)]:
        raise ParseError(f"stress-ng does not trust its numbers: {untrusted[0][:200]}")
    if int(row["ops"]) == 0 or float(row["rate"]) == 0:
        raise ParseError(f"{row['name']} finished no operation in the time that it had")
    wanted = params.get("ops", "")
    if wanted.isdecimal() and int(row["ops"]) < int(wanted):
        raise ParseError(
            f"{row['name']} finished {row['ops']} of {wanted} operations in the time that it had"
        )
    samples: dict[str, float | list[float]] = {
        f"{row['name']}.ops": float(row["ops"]),
        f"{row['name']}.ops_per_sec": float(row["rate"]),
    }
    if float(row["rate"]) < 10 and float(row["real"]) >= 1:
        samples[f"{row['name']}.seconds_per_op"] = float(row["real"]) / int(row["ops"])
    return samples


def _columns(match: re.Match[str]) -> tuple[bool, bool]:
    """Return whether the columns behind the rate are there."""
    return bool(match["share"]), bool(match["rss"])
