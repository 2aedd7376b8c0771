"""Output of swingbot's own vma-storm: one line of `key=value` words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.result import ParseError
from swingbot_jobs.reading.result_line import result_line

LINE = re.compile(
    r"vma-storm: areas=(?P<areas>\d{1,9}) writers=(?P<nr_task>\d{1,9}) readers=(?P<readers>\d{1,9})"
    r" seconds=(?P<seconds>\d{1,9}\.\d{1,9})"
    r" maps=(?P<maps>\d{1,15}) reads=(?P<reads>\d{1,15}) lines=(?P<lines>\d{1,18})"
)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return operations a second of writers and readers.

    Raises ParseError without exactly one result of the threads that the job asked for.
    """
    found = result_line("vma-storm", LINE, files)
    for name in ("areas", "nr_task", "readers"):
        if (wanted := params.get(name, "")).isdecimal() and int(wanted) != int(found[name]):
            raise ParseError(f"vma-storm had {name} {found[name]}, not {wanted}")
    seconds, maps, reads = float(found["seconds"]), int(found["maps"]), int(found["reads"])
    if seconds <= 0 or maps == 0:
        raise ParseError("vma-storm mapped nothing, or no time passed")
    if reads == 0:
        raise ParseError("no reader of vma-storm read /proc/self/maps to its end")
    return {
        "map_ops": maps / seconds,
        "read_ops": reads / seconds,
        "read_lines": int(found["lines"]) / seconds,
    }
