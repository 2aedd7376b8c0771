"""`/metrics`: the state of the service for Prometheus, in its text format 0.0.4.

Format: prometheus.io/docs/instrumenting/exposition_formats. The list of benchmark metrics has the
same address: clients that accept HTML get that page, all others these metrics.
Names are public: alert rules and panels elsewhere depend on them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from ..access.read_access import takes_page
from ..access.request_limits import Traffic
from ..ports import Connection, DatabaseAway, DatabaseError, Engine

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_STATES: Final = ("active", "drained", "quarantined")
_PHASES: Final = ("idle", "leased", "booting", "running", "returning", "lost", "quarantined")
_KEPT_SECONDS: Final = 5.0  # cache lifetime, shared by several scrapers

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All samples of one name. Unknown values are left out, never reported as 0."""

    name: str
    kind: Literal["gauge", "counter"]
    doc: str
    samples: Sequence[tuple[Labels, float | None]]

    def lines(self) -> Iterable[str]:
        known = [(labels, value) for labels, value in self.samples if value is not None]
        if not known:
            return
        yield f"# HELP {self.name} {self.doc}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in known:
            shown = ",".join(f'{key}="{text.translate(_ESCAPED)}"' for key, text in labels.items())
            yield f"{self.name}{f'{{{shown}}}' if shown else ''} {_number(value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMetrics:
    """Values known without the database: bytes, seconds, counts. None: not known."""

    disk_free: int
    disk_stop_below: int
    loop_age: float | None
    loop_failing: bool
    parts: Sequence[tuple[str, float, bool]]  # name, seconds since its heartbeat, whether it hangs
    artifacts: int | None
    artifact_bytes: int | None


def text(families: Iterable[MetricFamily]) -> str:
    return "".join(f"{line}\n" for family in families for line in family.lines())


def of_here(here: HostMetrics) -> list[MetricFamily]:
    return [
        _one(
            "swingbot_disk_free_bytes",
            "Free space on the disk of the state directory.",
            here.disk_free,
        ),
        _one(
            "swingbot_disk_stop_below_bytes",
            "Free space below which no orders are dispatched.",
            here.disk_stop_below,
        ),
        _one(
            "swingbot_loop_last_round_seconds",
            "Seconds since the last round of the loop.",
            here.loop_age,
        ),
        _family(
            "swingbot_part_heartbeat_seconds",
            "Seconds since the last heartbeat of a part of the service.",
            [({"part": part}, seconds) for part, seconds, _ in here.parts],
        ),
        _family(
            "swingbot_part_hung",
            "1 for a part without a heartbeat for health.hung_seconds, 0 for the others.",
            [({"part": part}, int(hangs)) for part, _, hangs in here.parts],
        ),
        _one("swingbot_loop_failing", "1 while rounds of the loop fail.", int(here.loop_failing)),
        _one(
            "swingbot_artifact_bytes",
            "Bytes of raw results in the artifact store; updated every ten minutes.",
            here.artifact_bytes,
        ),
        _one(
            "swingbot_artifacts",
            "Files in the artifact store; updated every ten minutes.",
            here.artifacts,
        ),
    ]


def of_web(traffic: Traffic) -> list[MetricFamily]:
    return [
        _one(
            "swingbot_web_requests", "Requests in progress, without those of workers.", traffic.open
        ),
        _one(
            "swingbot_web_requests_limit",
            "Requests in progress at which further ones are refused.",
            traffic.most,
        ),
        _family(
            "swingbot_web_refused_total",
            "Requests refused because of a limit, since the start.",
            [({"status": str(status)}, n) for status, n in sorted(traffic.refused.items())],
            "counter",
        ),
    ]


def of_database(figures: Rows) -> list[MetricFamily]:
    """Metric families from the document of `swingbot_db.read.metrics.figures`."""
    orders = {(row["kind"], row["state"]): row for row in figures["orders"]}
    every = [
        (kind, state) for kind in ("build", "boot") for state in ("waiting", "ready", "running")
    ]
    counted = {key: orders[key]["n"] if key in orders else 0 for key in every}
    (open_,), (mail,), (database,) = figures["open"], figures["mail"], figures["database"]
    return [
        _family(
            "swingbot_orders",
            "Open orders.",
            [({"kind": k, "state": s}, counted[k, s]) for k, s in every],
        ),
        _family(
            "swingbot_order_oldest_seconds",
            "Age of the oldest open order.",
            [
                ({"kind": k, "state": s}, orders[k, s]["oldest"])
                for k, s in every
                if (k, s) in orders
            ],
        ),
        _family(
            "swingbot_attempts_last_day",
            "Attempts of the last 24 hours by result.",
            _counted(figures["attempts"], "kind", "status"),
        ),
        _family(
            "swingbot_boots_total",
            "Boots by outcome.",
            _counted(figures["boots"], "testbox", "outcome"),
            "counter",
        ),
        _family(
            "swingbot_boot_seconds_total",
            "Duration of boots in seconds.",
            _counted(figures["boots"], "testbox", "outcome", value="seconds"),
            "counter",
        ),
        _family(
            "swingbot_runs_last_day",
            "Runs of the last 24 hours, without invalid ones.",
            _counted(figures["runs"], "testbox", "status"),
        ),
        _family("swingbot_kernel_builds_total", "Kernel builds.", _builds(figures, "n"), "counter"),
        _family(
            "swingbot_kernel_build_seconds_total",
            "Duration of kernel builds in seconds.",
            _builds(figures, "seconds"),
            "counter",
        ),
        *_testboxes(figures),
        _family(
            "swingbot_alerts",
            "Active alerts by kind.",
            _counted(figures.get("alerts", ()), "kind"),
        ),
        _family("swingbot_reports", "Reports by state.", _counted(figures["reports"], "state")),
        _one("swingbot_mail_stopped", "1 while sending of mail is stopped.", int(mail["stopped"])),
        _one(
            "swingbot_mail_oldest_seconds",
            "Age of the oldest mail to be sent.",
            mail["oldest"],
        ),
        _one("swingbot_bisections_open", "Bisections in progress.", open_["bisections"]),
        _one("swingbot_comparisons_open", "Comparisons in progress.", open_["comparisons"]),
        _one("swingbot_incidents_open", "Open incidents.", open_["incidents"]),
        _family(
            "swingbot_tree_failing",
            "1 for a tree whose last poll failed.",
            [({"tree": row["name"]}, int(row["failing"])) for row in figures["trees"]],
        ),
        _family(
            "swingbot_tree_polled_seconds",
            "Seconds since the last poll of a tree.",
            [({"tree": row["name"]}, row["since"]) for row in figures["trees"]],
        ),
        _one("swingbot_database_bytes", "Size of the database.", database["bytes"]),
    ]


def _testboxes(figures: Rows) -> list[MetricFamily]:
    testboxes = figures["testboxes"]
    return [
        _family(
            "swingbot_testbox_state",
            "1 for the state of a testbox as set by people or anchors, 0 for the others.",
            [
                ({"testbox": row["name"], "state": state}, int(row["state"] == state))
                for row in testboxes
                for state in _STATES
            ],
        ),
        _family(
            "swingbot_testbox_phase",
            "1 for the phase that a testbox is in, 0 for the others.",
            [
                ({"testbox": row["testbox"], "phase": phase}, int(row["state"] == phase))
                for row in figures.get("phases", ())
                for phase in _PHASES
            ],
        ),
        _family(
            "swingbot_testbox_leased",
            "1 while a testbox works on an order.",
            [({"testbox": row["name"]}, int(row["leased"])) for row in testboxes],
        ),
        _family(
            "swingbot_testbox_last_boot_seconds",
            "Seconds since the last boot of a testbox.",
            [({"testbox": row["name"]}, row["since"]) for row in testboxes],
        ),
    ]


def _builds(figures: Rows, value: str) -> list[tuple[Labels, float | None]]:
    return [
        ({"status": row["status"], "cached": str(row["cached"]).lower()}, row[value])
        for row in figures["builds"]
    ]


def _counted(
    rows: Iterable[Mapping[str, Any]], *labels: str, value: str = "n"
) -> list[tuple[Labels, float | None]]:
    return [({label: str(row[label]) for label in labels}, row[value]) for row in rows]


def _family(
    name: str,
    doc: str,
    samples: Sequence[tuple[Labels, float | None]],
    kind: Literal["gauge", "counter"] = "gauge",
) -> MetricFamily:
    return MetricFamily(name, kind, doc, samples)


def _one(name: str, doc: str, value: float | None) -> MetricFamily:
    return MetricFamily(name, "gauge", doc, [({}, value)])


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))


class Metrics:
    """The endpoint. Without a database it reports the rest, and `swingbot_database_up 0`."""

    def __init__(
        self,
        engine: Engine,
        figures: Callable[[Connection], Rows],
        here: Callable[[], HostMetrics],
        answers: Callable[[], bool] = lambda: True,
        traffic: Traffic | None = None,
    ) -> None:
        """`answers` says within seconds whether the database does."""
        self._engine, self._figures, self._here = engine, figures, here
        self._answers, self._traffic = answers, traffic
        # of its own, so that pages that wait for the database do not delay it
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metrics")
        self._made, self._text = float("-inf"), ""

    async def answer(self, request: Request) -> Response:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._refresh)
        return Response(self._text, media_type=MEDIA_TYPE)

    def _refresh(self) -> None:
        if time.monotonic() - self._made > _KEPT_SECONDS:
            self._text = self._look()
            self._made = time.monotonic()

    def _look(self) -> str:
        begin = time.monotonic()
        families = of_here(self._here())
        if self._traffic is not None:
            families += of_web(self._traffic)
        up = int(self._answers())
        try:
            if up:
                with self._engine.connect() as conn:
                    families += of_database(self._figures(conn))
        except DatabaseAway:
            up = int(self._answers())  # a query that takes too long is left out
        except DatabaseError:
            up = 0
        families.append(_one("swingbot_database_up", "1 if the database responds.", up))
        families.append(
            _one(
                "swingbot_metrics_seconds",
                "Time to collect these metrics, in seconds.",
                round(time.monotonic() - begin, 4),
            )
        )
        return text(families)

    def routes(self) -> list[Route]:
        return [_ForPrograms("/metrics", self.answer, methods=["GET", "HEAD"])]


class _ForPrograms(Route):
    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and takes_page(Headers(scope=scope).get("accept", "")):
            return Match.NONE, {}
        return super().matches(scope)
