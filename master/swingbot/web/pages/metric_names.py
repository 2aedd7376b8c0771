"""What the name of a metric says: its program, and the pattern that matches it alone."""

from __future__ import annotations

import re
from typing import Final

_LIKE: Final = re.compile(r"[\\%_]")  # special characters of LIKE patterns


def like(metric: str) -> str:
    """Return the LIKE pattern that matches this metric alone, or the beginning of one."""
    return _LIKE.sub(r"\\\g<0>", metric)


def program_of(metric: str) -> str:
    return metric.partition(".")[0]


def is_of(metric: str, unit_job: str) -> bool:
    """Return True if the benchmark itself reported the metric, judged by the unit job's name."""
    return program_of(metric) in unit_job
