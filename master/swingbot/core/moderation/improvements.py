"""Which improvements are told alone: those asked for, and writes that got faster by more than a change of code plausibly makes them.

Where throughput goes from b to h = b (1 + p/100), the time of one operation falls by the fraction f = 1 - b/h = p / (100 + p).

- A *synced* write (fsync, O_SYNC, direct, journal commit) waits for the device; code is a small part of its time. More than 20 % faster means that more
  than a sixth of the time is gone (20/120), and the cheapest way to get there is a flush that is not sent any more.
- A *buffered* write is copied into memory; 50 % faster means that more than a third is gone (50/150): either work was left out, or a very good patch.

`Plausible` holds both. A mail too many costs a maintainer a minute, a missing flush costs data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

WriteKind = Literal["synced", "buffered"]
_WORD: Final = re.compile(r"[a-z]+")
# Words in the names of jobs and metrics of the field's benchmarks (will-it-scale, fio, aim7, fsmark, dbench, filebench).
_SYNCED: Final = frozenset(
    (
        "fsync",
        "fdatasync",
        "sync",
        "osync",
        "dsync",
        "msync",
        "syncfs",
        "direct",
        "journal",
        "commit",
        "dbench",
        "fsmark",
    )
)
_WRITES: Final = frozenset(
    (
        *(
            "write",
            "pwrite",
            "writev",
            "writes",
            "randwrite",
            "rw",
            "readwrite",
            "randrw",
            "append",
            "append_only",
        ),
        *(
            "fallocate",
            "ftruncate",
            "truncate",
            "creat",
            "create",
            "unlink",
            "rename",
            "mkdir",
            "varmail",
            "fileserver",
        ),
    )
)
_READERS: Final = frozenset(("rwsem", "rwlock", "pread", "read", "randread"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausible:
    """Percentages above which an improvement is suspicious."""

    synced_pct: float = 20.0
    buffered_pct: float = 50.0


def write_kind(unit_job: str, metric: str) -> WriteKind | None:
    """What the benchmark does to storage, by the words of its names; None: it is not known to write."""
    words = set(_WORD.findall(f"{unit_job} {metric}".lower()))
    if words & _SYNCED:
        return "synced"
    return "buffered" if words & _WRITES and not words & _READERS else None


def too_good(
    unit_job: str, metric: str, better: str | None, change_pct: float | None, plausible: Plausible
) -> str | None:
    """Why this improvement is suspicious, in a sentence; None where it is not.

    `change_pct` is that of the metric; of one where lower is better (a latency) the gain is 100 (b/h - 1).
    """
    kind = write_kind(unit_job, metric)
    if kind is None or better is None or change_pct is None or change_pct <= -100:
        return None
    gain = change_pct if better == "higher" else 100.0 * (100.0 / (100.0 + change_pct) - 1.0)
    limit = plausible.synced_pct if kind == "synced" else plausible.buffered_pct
    if gain <= limit:
        return None
    gone = 100.0 * gain / (100.0 + gain)
    what = "synced to its device" if kind == "synced" else "buffered"
    return f"a {what} write takes {gone:.0f} % less time, more than {100 * limit / (100 + limit):.0f} %: is a flush, a sync or the write itself skipped?"
