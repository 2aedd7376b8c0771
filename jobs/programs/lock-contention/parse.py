"""`perf lock contention`: one line per stack, summed by kind of lock and caller, and by lock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from swingbot_jobs.kernel_diff import source_name
from swingbot_jobs.reading.result import ParseError

HEAD = re.compile(r"\s*contended\s+total wait\s+max wait\s+avg wait\s+type\s+caller\s*")
TIME = r"(\d{1,9}(?:\.\d{1,3})?) (ns|us|ms|s|m|h)"
ROW = re.compile(
    rf"\s*(?P<waits>\d{{1,15}})\s+{TIME}\s+{TIME}\s+{TIME}\s+(?P<kind>[\w:-]{{1,40}})\s+(?P<caller>[\w.$]{{1,200}})(?:\+0x[0-9a-f]{{1,16}})?\s*"
)
RECORDED = re.compile(r"recorded (\d{1,9}\.\d{2}) s on (\d{1,5}) CPUs")
MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6}
COUNT = re.compile(r"\s*\d+\s+\d")
MAX_CALLERS = 500  # three numbers of each

# Waiting for these keeps the CPU busy; a task that waits for any other kind sleeps.
SPINNING = ("spinlock", "rwlock")
# perf 6.1 knows the caller of the lock function, not the lock. These functions of mm/ take one of
# the two locks that page faults meet on; where the compiler inlines one of them, the caller is the
# function around it. Names of kernels 5.15 to 6.12.
ZONE = re.compile(
    r"get_page_from_freelist|rmqueue\w*|__rmqueue\w*|free_pcppages_bulk|free_one_page"
    r"|free_unref_(?:page|folio)\w*|__free_pages_ok|__free_one_page|free_frozen_page\w*"
    r"|drain_(?:pages|zone_pages|local_pages)\w*|__alloc_pages\w*|alloc_pages_bulk\w*"
    r"|unreserve_highatomic_pageblock|reserve_highatomic_pageblock|isolate_freepages\w*"
    r"|__isolate_free_page|set_migratetype_isolate|take_page_off_buddy"
)
LRU = re.compile(
    r"folio_batch_move_lru|pagevec_lru_move_fn|__pagevec_lru_add\w*|lru_add_drain\w*|lru_add_fn"
    r"|release_pages|folios_put\w*|__page_cache_release|__folio_put\w*|lru_note_cost\w*"
    r"|(?:folio|lock_page)_lruvec_\w+|folio_isolate_lru|isolate_lru_\w+"
    r"|isolate_migratepages_block|shrink_(?:in)?active_list|move_(?:pages|folios)_to_lru"
    r"|mlock_(?:pagevec|folio_batch|folio)\w*|__?m(?:un)?lock_(?=\w*folio)\w*|folio_activate\w*"
    r"|check_move_unevictable_\w+|deactivate_\w+|lruvec_\w+|evict_folios|scan_folios"
)


@dataclass(frozen=True)
class Row:
    """Waits of one stack: number, total time and longest time in us."""

    waits: float
    total: float
    longest: float
    kind: str
    caller: str

    @property
    def spins(self) -> bool:
        return self.kind.partition(":")[0] in SPINNING


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return waits and times by caller and in total, and shares of CPU time if the recorded time is
    known.

    Raises ParseError without perf's table. A table without rows means that nothing waited.
    """
    lines = [line[:500] for line in files.get("lock-contention", "").splitlines()]
    if not any(HEAD.fullmatch(line) for line in lines):
        raise ParseError("perf lock printed no table")
    rows = list(rows_of(lines))
    return dict(by_caller(rows) | shares(rows, lines))


def rows_of(lines: list[str]) -> Iterator[Row]:
    for line in lines:
        if row := ROW.fullmatch(line):
            yield Row(
                float(row["waits"]),
                float(row[2]) * MICROSECONDS[row[3]],
                float(row[4]) * MICROSECONDS[row[5]],
                row["kind"],
                row["caller"],
            )
        elif COUNT.match(line):
            raise ParseError(f"{line.strip()[:80]!r} is no row of perf lock that can be read")


def by_caller(rows: list[Row]) -> dict[str, float]:
    """Waits, total and longest time of all rows and of each kind of lock and caller."""
    totals = {
        "contended": sum(row.waits for row in rows),
        "total_wait_us": sum(row.total for row in rows),
    }
    callers: set[str] = set()
    for row in rows:
        who = f"{row.kind}.{row.caller}"
        callers.add(who)
        if len(callers) <= MAX_CALLERS:
            totals[f"contended.{who}"] = totals.get(f"contended.{who}", 0.0) + row.waits
            totals[f"total_wait_us.{who}"] = totals.get(f"total_wait_us.{who}", 0.0) + row.total
            totals[f"max_wait_us.{who}"] = max(totals.get(f"max_wait_us.{who}", 0.0), row.longest)
    return totals


def shares(rows: list[Row], lines: list[str]) -> dict[str, float]:
    """Percent of CPU time spent spinning, by lock, and the mean number of tasks that slept waiting.

    Share of a lock: 100 * (sum of its waits) / (seconds recorded * CPUs). Empty without the line
    `recorded`, which older results lack. On one CPU no task spins:
    there is no share of it.
    """
    recorded = next((match for line in lines if (match := RECORDED.fullmatch(line))), None)
    if recorded is None or not (cpu_us := float(recorded[1]) * 1e6 * int(recorded[2])):
        return {}
    spun = {"zone": 0.0, "lru": 0.0, "other": 0.0}
    callers: dict[str, float] = {}
    for row in rows:
        if row.spins:
            spun[lock_of(row.caller)] += row.total
            if row.caller in callers or len(callers) < MAX_CALLERS:
                callers[row.caller] = callers.get(row.caller, 0.0) + row.total
    slept = sum(row.total for row in rows if not row.spins)
    seconds = float(recorded[1])
    of_all = {"sleeping_tasks": slept / (seconds * 1e6), "recorded_seconds": seconds}
    if int(recorded[2]) == 1:
        return of_all
    percentages = {f"spinning_pct.{lock}": 100.0 * spent / cpu_us for lock, spent in spun.items()}
    percentages |= {f"spinning_pct.by.{name}": 100.0 * us / cpu_us for name, us in callers.items()}
    return percentages | of_all | {"spinning_pct": 100.0 * sum(spun.values()) / cpu_us}


def lock_of(caller: str) -> str:
    """`zone`, `lru` or `other`: the lock that a function of mm/ takes."""
    name = source_name(caller)
    return "zone" if ZONE.fullmatch(name) else "lru" if LRU.fullmatch(name) else "other"
