"""Boots whose guests make up names of metrics by the thousand, with values that overflow."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest import mock

import sqlalchemy as sa
from starlette.testclient import TestClient

from swingbot.app.settings import load
from swingbot.app.web import service
from swingbot.core.limits import JUDGED_COUNTERS, METRIC_NAMES
from swingbot.service import tick
from swingbot.service.table.judge import judge_comparisons
from swingbot_db.engine import make_engine
from tests.attack.target import Result, Target
from tests.database import migrate_new
from tests.fakelinux import make_fakelinux
from tests.fakes.brain import make_brain
from tests.fakes.guest import Guest, a_guest, counts, random_names, read_whole, views
from tests.fakes.mail import brain_environment
from tests.postgres import own_server
from tests.programs import PROGRAMS

NAME: Final = "guest-results"
WANTED: Final = (
    f"at most {METRIC_NAMES} names and {JUDGED_COUNTERS} counters beside the benchmark; judged in"
    " 5 s of processor time; each view answers; the page has less than 1 MB"
)
BOOTS, NAMES = 4, 1990  # boots of each of two kernels; names of each of eight monitors
JUDGED_SECONDS: Final = 5.0
PAGE_BYTES: Final = 1 << 20


def run(target: Target) -> Result:
    """Compare two kernels whose guests do that, on a server of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory,
        own_server() as server,
    ):
        url = server.create("attack")
        migrate_new(url)
        engine = make_engine(url)
        try:
            return _compared(Path(directory), url, engine)
        finally:
            engine.dispose()


def _compared(place: Path, url: str, engine: sa.Engine) -> Result:
    make_fakelinux(place / "linux", [])
    settings = load(environ=brain_environment(place / "state", url))
    judged = _Clock(judge_comparisons)
    with (
        make_brain(settings, engine, place / "linux") as brain,
        a_guest(brain) as guest,
        mock.patch.object(tick, "judge_comparisons", judged),
    ):
        number = _attacked(guest)
        table = brain.facts("c", number)
    with engine.connect() as conn:
        names = conn.execute(sa.text("SELECT count(*) FROM measured_metric")).scalar_one()
        size = conn.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one()
    for view in views(engine):
        read_whole(engine, view)
    with TestClient(service(settings, engine), base_url=settings.web_url) as client:
        page = client.get(f"/comparison/c{number}")
    declared = len(PROGRAMS["page-fault"].metrics)
    benchmark = [row for row in table["rows"] if row["metric"].startswith("page-fault.")]
    held = (
        names <= METRIC_NAMES + declared
        and judged.seconds < JUDGED_SECONDS
        and table["status"] == "done"
        and bool(benchmark)
        and _rows(engine, number) <= JUDGED_COUNTERS + declared
        and page.status_code == 200
        and len(page.content) < PAGE_BYTES
    )
    return Result(
        held,
        f"{names} names of {2 * BOOTS} boots with {NAMES} a monitor, {_rows(engine, number)} rows,"
        f" judged in {judged.seconds:.1f} s, database {size >> 20} MiB,"
        f" page {len(page.content) >> 10} KiB",
    )


def _attacked(guest: Guest) -> int:
    made_up, overflow = random_names(NAMES), counts(f"{1e155:f}", f"{9e299:f}", f"-{1e300:f}")
    hostile = "".join(
        f"{key} 9\n"
        for key in ("'; DROP TABLE run; --", "<script>", "\x1b[31m", "n" * 5000, "é" * 99)
    )

    def files(directory: str) -> dict[str, bytes]:
        found = made_up(directory)
        if directory.endswith("/1"):  # of the second run
            found |= overflow(directory)
            text = f"time: 1\n{hostile}time: 2\n{hostile}"
            found[f"{directory}/meminfo"] = text.encode()
        return found

    guest.add = files
    return guest.compare(BOOTS)


def _rows(engine: sa.Engine, number: int) -> int:
    counted = sa.text("SELECT count(*) FROM comparison_row WHERE comparison = :c")
    with engine.connect() as conn:
        return int(conn.execute(counted, {"c": number}).scalar_one())


class _Clock:
    """A function with the processor time of all its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self.seconds = function, 0.0

    def __call__(self, *given: Any) -> Any:
        began = time.process_time()
        try:
            return self._function(*given)
        finally:
            self.seconds += time.process_time() - began
