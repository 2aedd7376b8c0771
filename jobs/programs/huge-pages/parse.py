"""Output of swingbot's own huge-pages: one line of `key=value` words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.percentile import has_enough
from swingbot_jobs.reading.result import ParseError
from swingbot_jobs.reading.result_line import result_line

MIGRATED = 1000  # pages; of fewer the work that does not depend on them is too much
LINE = re.compile(
    r"huge-pages: test=(?P<test>collapse|khugepaged|hugetlb|compact) bytes=\d{1,15}"
    r" asked=(?P<asked>\d{1,9}) huge=(?P<huge>\d{1,9}) seconds=(?P<seconds>\d{1,9}\.\d{1,9})"
    r" timed=(?P<timed>\d{1,9}) p50_ns=(?P<p50>\d{1,10}) migrated=(?P<migrated>\d{1,15})"
    r" order9_blocks=(?P<blocks>\d{1,9})"
)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return time a huge page or a moved page in us, the share in per cent, and free blocks.

    Raises ParseError without a complete result, or if nothing became huge.
    """
    line = result_line("huge-pages", LINE, files)
    if line["test"] != params.get("test", line["test"]):
        raise ParseError(f"huge-pages did {line['test']}, not {params['test']}")
    asked, huge, seconds = int(line["asked"]), int(line["huge"]), float(line["seconds"])
    if asked < 1 or seconds <= 0:
        raise ParseError("huge-pages asked for none, or no time passed")
    if huge < 1:
        raise ParseError(f"none of {asked} huge pages came of it")
    migrated = int(line["migrated"])
    samples: dict[str, float | list[float]] = {
        "huge_share": 100 * huge / asked,
        "order9_blocks": float(line["blocks"]),
    }
    if line["test"] != "compact":
        samples["latency"] = seconds / huge * 1e6
    if line["test"] in ("compact", "hugetlb") and migrated >= MIGRATED:
        samples["migrate_time"] = seconds / migrated * 1e6
    if has_enough(50, int(line["timed"])):
        samples["latency_p50"] = int(line["p50"]) / 1000
    return samples
