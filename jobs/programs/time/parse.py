"""`time -v` of GNU or of busybox, under LKP's names.

busybox writes the elapsed time as `1m 2.34s`, and the largest resident set size too large by the page size in kB: it takes the
kernel's kB for pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

LINE = re.compile(r"(?P<key>[A-Z][A-Za-z ]{1,80}): (?P<value>[0-9hms:. ?]{1,40})%?")
CLOCK = re.compile(r"(?:(\d{1,6})[h:] ?)?(\d{1,6})[m:] ?(\d{1,6}(?:\.\d{1,9})?)s?")
# What has no meaning for a run: the kernel fills these with 0, and the exit status has a file of its own.
LEFT_OUT = re.compile(r"average_.*|exit_status|page_size|signals_delivered|socket_messages_.*")


def series(text: str) -> list[dict[str, float]]:
    """All lines under LKP's keys, as one snapshot."""
    found: dict[str, float] = {}
    busybox = False
    for line in text.splitlines():
        match = LINE.fullmatch(re.sub(r" \([^()]{1,60}\)", "", line.strip()[:200]))
        if match is None:
            continue
        key = re.sub(r"\s+", "_", match["key"]).lower()
        value = match["value"].strip()
        busybox |= key == "elapsed_time" and "m" in value
        number = clock(value) if key == "elapsed_time" else plain(value)
        if number is not None:
            found.setdefault(key, number)
    page_kb = found.get("page_size", 0) / 1024
    if busybox and page_kb > 0 and "maximum_resident_set_size" in found:
        found["maximum_resident_set_size"] /= page_kb
    return [found] if found else []


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """What the run's processes used; ParseError without an elapsed time, which `time` writes last of the times."""
    found = (series(files.get("time", "")) or [{}])[0]
    if "elapsed_time" not in found:
        raise ParseError("time -v gave no elapsed time")
    return {key: value for key, value in found.items() if not LEFT_OUT.fullmatch(key)}


def clock(text: str) -> float | None:
    """Seconds of `1:02.34`, `1:02:03`, busybox's `1m 2.34s` and `1h 2m 03s`."""
    match = CLOCK.fullmatch(text)
    return (int(match[1] or 0) * 60 + int(match[2])) * 60 + float(match[3]) if match else None


def plain(text: str) -> float | None:
    """A number; `?`, which GNU time writes for the share of a run that took no time, is none."""
    return float(text) if re.fullmatch(r"\d{1,20}(?:\.\d{1,9})?", text) else None
