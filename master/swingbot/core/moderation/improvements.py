"""Find improvements that get a mail of their own instead of a line in the digest.

These are improvements that were requested, and writes that became faster than a code change can
plausibly explain.

Where throughput goes from b to h = b (1 + p/100), the time of one operation falls by the fraction
f = 1 - b/h = p / (100 + p).

- A *synced* write (fsync, O_SYNC, direct, journal commit) waits for the device; code takes a small
  part of its time. More than 20 % faster means that more than a sixth of the time is gone (20/120),
  most likely because a flush is no longer sent.
- A *buffered* write is copied into memory. 50 % faster means that more than a third of the time is
  gone (50/150): either the patch is very good, or it skips work.

`Plausible` holds both limits. One mail too many costs a maintainer a minute; a missing flush costs
data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

WriteKind = Literal["synced", "buffered"]
_WORD: Final = re.compile(r"[a-z]+")
# Words in job and metric names of common benchmarks: will-it-scale, fio, aim7, fsmark, dbench,
# filebench.
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
    """Classify the writes of a benchmark by the words in its names; None if it is not known to
    write.
    """
    words = set(_WORD.findall(f"{unit_job} {metric}".lower()))
    if words & _SYNCED:
        return "synced"
    return "buffered" if words & _WRITES and not words & _READERS else None


def too_good(
    unit_job: str, metric: str, better: str | None, change_pct: float | None, plausible: Plausible
) -> str | None:
    """Return why this improvement is suspicious, or None if it is not.

    `change_pct` is the change of the metric. If lower is better (a latency), the gain is
    100 (b/h - 1).
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
    return (
        f"a {what} write takes {gone:.0f} % less time, more than"
        f" {100 * limit / (100 + limit):.0f} %: is a flush, a sync or the write itself skipped?"
    )
