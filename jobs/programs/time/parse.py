"""`time -v` of GNU or of busybox, under LKP's names.

busybox prints the elapsed time as `1m 2.34s`. It prints the largest resident set size too large by
the page size in kB, because it treats the kernel's kB as pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError

LINE = re.compile(r"(?P<key>[A-Z][A-Za-z ]{1,80}): (?P<value>[0-9hms:. ?]{1,40})%?")
CLOCK = re.compile(r"(?:(\d{1,6})[h:] ?)?(\d{1,6})[m:] ?(\d{1,6}(?:\.\d{1,9})?)s?")
ENDED = re.compile(r"Command terminated by signal (\d{1,3})")
# Not meaningful for a run: the kernel fills these with 0, and the exit status has its own file.
LEFT_OUT = re.compile(r"average_.*|exit_status|page_size|signals_delivered|socket_messages_.*")


def series(text: str) -> list[dict[str, float]]:
    """Return all lines with LKP's keys, as one snapshot."""
    values: dict[str, float] = {}
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
            values.setdefault(key, number)
    page_kb = values.get("page_size", 0) / 1024
    if busybox and page_kb > 0 and "maximum_resident_set_size" in values:
        values["maximum_resident_set_size"] /= page_kb
    return [values] if values else []


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return the resources that the run's processes used.

    Raises ParseError without an elapsed time, which `time` writes last of the times.
    """
    text = files.get("time", "")
    if ended := ENDED.search(text):
        raise ParseError(f"the command was ended by signal {ended[1]}: its times are of a part")
    values = (series(text) or [{}])[0]
    if "elapsed_time" not in values:
        raise ParseError("time -v printed no elapsed time")
    return {key: value for key, value in values.items() if not LEFT_OUT.fullmatch(key)}


def clock(text: str) -> float | None:
    """Seconds of `1:02.34`, `1:02:03`, busybox's `1m 2.34s` and `1h 2m 03s`."""
    match = CLOCK.fullmatch(text)
    return (int(match[1] or 0) * 60 + int(match[2])) * 60 + float(match[3]) if match else None


def plain(text: str) -> float | None:
    """Return a number, or None for `?`, which GNU time prints for the share of a run that took no
    time.
    """
    return float(text) if re.fullmatch(r"\d{1,20}(?:\.\d{1,9})?", text) else None
