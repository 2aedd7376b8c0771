"""Output of swingbot's own memcg: one line of `key=value` words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.percentile import has_enough
from swingbot_jobs.reading.result import ParseError
from swingbot_jobs.reading.result_line import result_line

PAGE = 4096
_TIME = r"\d{1,9}\.\d{1,9}"
LINE = re.compile(
    r"memcg: groups=(?P<groups>\d{1,9}) pages=(?P<pages>\d{1,9})"
    rf" charged_bytes=(?P<charged>\d{{1,15}}) charge_seconds=(?P<charge>{_TIME})"
    rf" create_seconds=(?P<create>{_TIME}) create_p99_ns=(?P<create_p99>\d{{1,10}})"
    rf" remove_seconds=(?P<remove>{_TIME}) remove_p99_ns=(?P<remove_p99>\d{{1,10}})"
    rf" release_seconds=(?P<release>{_TIME}) left=(?P<left>\d{{1,9}})"
)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return times a group and a page in us, and the release of all in ms.

    Raises ParseError without a complete result, or if the pages were not charged to the groups.
    """
    line = result_line("memcg", LINE, files)
    groups, pages = int(line["groups"]), int(line["pages"])
    for name, done in (("groups", groups), ("pages", pages)):
        if (wanted := params.get(name, "")).isdecimal() and int(wanted) != done:
            raise ParseError(f"memcg had {done} {name}, not {wanted}")
    times = {name: float(line[name]) for name in ("create", "remove", "charge")}
    if groups < 1 or pages < 1 or min(times.values()) <= 0:
        raise ParseError("memcg did nothing, or no time passed")
    if int(line["charged"]) < groups * pages * PAGE:
        raise ParseError(
            f"only {line['charged']} bytes were charged to {groups} groups that touched"
            f" {groups * pages * PAGE}"
        )
    samples: dict[str, float | list[float]] = {
        "create_time": times["create"] / groups * 1e6,
        "remove_time": times["remove"] / groups * 1e6,
        "charge_time": times["charge"] / (groups * pages) * 1e6,
    }
    if has_enough(99, groups):
        samples |= {name: int(line[name]) / 1000 for name in ("create_p99", "remove_p99")}
    if int(line["left"]) == 0:
        samples["release_time"] = float(line["release"]) * 1000
    return samples
