"""`perf report --children --header -g folded,0.5,callee --sort=dso,symbol`,
with LKP's names and rounding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from swingbot_jobs.reading.perf_profile import lock_slowpath, read_profile


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return shares of at least 0.05 percent. Raises ParseError without a profile."""
    text = files.get("perf-profile", "")
    shares = read_profile(text)
    large = {name: round(share, 2) for name, share in shares.items() if share >= 0.05}
    if re.search(r"^# nrcpus online : 1$", text, re.MULTILINE):  # no task spins on one CPU
        return dict(large)
    return {**large, "lock_slowpath": round(lock_slowpath(shares), 2)}
