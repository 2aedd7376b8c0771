"""Durations estimated from earlier builds and boots; all displayed estimates come from here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import sqlalchemy as sa

from swingbot.core.plan.lab_queue import LATEST, PendingOrder, QueueForecast, pace, usual_seconds
from swingbot_db.store.boots import MEAN_SECONDS
from swingbot_db.store.specs import Specs
from swingbot_db.turns import JOIN_TURNS, TURNS
from swingbot_jobs.testbox.boot_time import boot_seconds as jobs_seconds
from swingbot_jobs.testbox.definition import remembered

from .rows import Row, first, rows

UNTIMED: Final = "computed from its jobs, not timed yet"
# From hand-out to result, not the boot alone: that includes what surrounds it.
_BOOTS = """
SELECT extract(epoch FROM a.ended_at - a.created_at) AS seconds
FROM boot b JOIN attempt a ON a.id = b.attempt
WHERE b.testbox = :testbox AND (CAST(:spec AS text) IS NULL OR b.spec = :spec)
  AND b.origin = 'measured' AND a.ended_at IS NOT NULL
ORDER BY b.id DESC LIMIT :limit
"""
_MEANS = f"""
SELECT s.spec, ({MEAN_SECONDS.format(testbox=":testbox", spec="s.spec")}) AS seconds
FROM unnest(CAST(:specs AS text[])) AS s (spec)
"""
# Time of the next build of a bisection: nearly all recent builds were such steps, and the median
# is robust against the others.
_BUILD_SECONDS = """
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds
FROM (SELECT seconds FROM kernel_build WHERE NOT cached AND origin = 'measured'
  ORDER BY built_at DESC LIMIT 10) AS latest
"""
_PACE = """
SELECT f.seconds AS foreseen, b.seconds AS actual
FROM kernel_build b JOIN build_forecast f ON f.build_key = b.build_key
WHERE NOT b.cached AND b.status = 'built' AND b.origin = 'measured'
ORDER BY b.built_at DESC LIMIT :limit
"""
# A handed-out build waits in Buildbot while another build runs there, so its time starts when the
# latest build ends.
_PENDING = f"""
WITH {TURNS}
SELECT o.id, o.build_key, o.testbox, o.spec, o.priority, f.seconds AS foreseen,
  asker.who AS asker, served.ago AS served,
  extract(epoch FROM now() - greatest(a.created_at, latest.built_at)) AS elapsed
FROM orders o {JOIN_TURNS}
LEFT JOIN attempt a ON a.order_id = o.id AND a.state = 'running'
LEFT JOIN build_forecast f ON o.kind = 'build' AND f.build_key = o.build_key
LEFT JOIN LATERAL (SELECT max(built_at) AS built_at FROM kernel_build
  WHERE o.kind = 'build' AND NOT cached AND built_at > a.created_at) AS latest ON true
WHERE o.state IN ('waiting', 'ready', 'running')
"""
_FORECASTS = """
SELECT k.build_key, f.seconds FROM unnest(CAST(:keys AS text[])) AS k (build_key)
LEFT JOIN build_forecast f ON f.build_key = k.build_key
WHERE NOT EXISTS (SELECT 1 FROM kernel_build b WHERE b.build_key = k.build_key)
"""
_BUILDERS = """
SELECT greatest(1, count(DISTINCT worker)) AS builders FROM worker_compiler WHERE problem IS NULL
"""


def boot_seconds(conn: sa.Connection, testbox: str, spec: str | None = None) -> float | None:
    """Usual wall seconds from hand-out to result of a boot of this spec on the testbox.

    The median of the latest boots of the spec, else of any spec; None before the first boot.
    """
    for choice in (spec, None) if spec else (None,):
        found = rows(conn, _BOOTS, testbox=testbox, spec=choice, limit=LATEST)
        if (seconds := usual_seconds([float(row["seconds"]) for row in found])) is not None:
            return seconds
    return None


def computed_boot_seconds(conn: sa.Connection, testbox: str, spec: str) -> float | None:
    """Seconds of a boot that was never timed, from the file of its testbox and its unit jobs; None
    if that file was stored by an earlier version.
    """
    row = first(conn, "SELECT facts FROM testbox WHERE name = :name", name=testbox)
    try:
        known = None if row is None else remembered(row["facts"])
    except KeyError:
        return None
    return None if known is None else jobs_seconds(known, Specs(conn).get(spec))


def mean_boot_seconds(conn: sa.Connection, testbox: str, specs: Sequence[str]) -> dict[str, float]:
    """Mean seconds of the last boots that came up on the testbox by spec, if there are any."""
    found = rows(conn, _MEANS, testbox=testbox, specs=list(specs))
    return {row["spec"]: row["seconds"] for row in found if row["seconds"] is not None}


def build_seconds(conn: sa.Connection) -> float | None:
    """Median wall seconds of the last 10 uncached kernel builds; None before the first."""
    row = first(conn, _BUILD_SECONDS)
    return None if row is None or row["seconds"] is None else float(row["seconds"])


@dataclass(frozen=True, kw_only=True)
class LabQueue:
    """The open orders of the whole lab, and when each ends. A page loads it once."""

    conn: sa.Connection
    pace: float
    troubles: dict[str, str | None] = field(default_factory=dict)  # of `testbox_status.waits`
    computed: set[tuple[str, str]] = field(default_factory=set)  # boots that were never timed
    _boots: dict[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def load(cls, conn: sa.Connection) -> LabQueue:
        latest = [(row["foreseen"], row["actual"]) for row in rows(conn, _PACE, limit=LATEST)]
        return cls(conn=conn, pace=pace(latest))

    @cached_property
    def forecast(self) -> QueueForecast:
        builders = first(self.conn, _BUILDERS)
        return QueueForecast(
            builders=int(builders["builders"]) if builders else 1,
            pending={row["id"]: self._order(row) for row in rows(self.conn, _PENDING)},
        )

    def boot_seconds(self, testbox: str, spec: str) -> float:
        """Return `boot_seconds` of the lab, computed before the first boot, else infinite."""
        place = (testbox, spec)
        if place not in self._boots:
            seconds = boot_seconds(self.conn, testbox, spec)
            if seconds is None:
                seconds = computed_boot_seconds(self.conn, testbox, spec)
                self.computed.add(place)
            self._boots[place] = math.inf if seconds is None else seconds
        return self._boots[place]

    def note(self, places: Iterable[tuple[str, str]]) -> str | None:
        """Return what makes an estimate with boots of these (testbox, spec) rough."""
        return UNTIMED if self.computed.intersection(places) else None

    def waits(self, orders: Iterable[int]) -> list[str]:
        """Return a sentence if a request with these open orders waits for builds of others."""
        ahead = self.forecast.builds_ahead(set(orders))
        others = "1 other kernel build is" if ahead == 1 else f"{ahead} other kernel builds are"
        return [f"{others} before its own"] if ahead else []

    def left_with(self, kind: str, boots: Mapping[tuple[str, str, str], int]) -> float | None:
        """Return the `left_with` of the forecast, from the durations that the database has."""
        keys = list({key for key, _, _ in boots})
        return self.forecast.left_with(
            kind,
            boots,
            {(name, spec): self.boot_seconds(name, spec) for _, name, spec in boots},
            {
                row["build_key"]: self._build(row["seconds"])
                for row in rows(self.conn, _FORECASTS, keys=keys)
            },
        )

    def _order(self, row: Row) -> PendingOrder:
        return PendingOrder(
            id=row["id"],
            build_key=row["build_key"],
            testbox=row["testbox"],
            priority=row["priority"],
            seconds=self.boot_seconds(row["testbox"], row["spec"])
            if row["testbox"]
            else self._build(row["foreseen"]),
            elapsed=None if row["elapsed"] is None else max(0.0, float(row["elapsed"])),
            asker=row["asker"],
            served=row["served"],
        )

    def _build(self, foreseen: float | None) -> float:
        return math.inf if foreseen is None else foreseen * self.pace
