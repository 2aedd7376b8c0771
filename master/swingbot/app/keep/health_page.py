"""What the pages show of the health of this machine: `/healthz`, and its problems in `status`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from swingbot.app.keep.health_check import hung_here, problems_here
from swingbot.app.keep.testbox_here import testbox_here
from swingbot.app.settings import Settings
from swingbot.web.health.healthz import HealthPage
from swingbot.web.ports import ReadModels
from swingbot_db import read
from swingbot_db.engine import Connection, Engine
from swingbot_db.probe import NoAnswer, ask


def health(settings: Settings, engine: Engine) -> HealthPage:
    def database() -> dict[str, Any]:
        try:
            return ask(engine.url, read.REACHABLE)[0]
        except NoAnswer as error:
            return {"reason": f"the database does not respond: {error}"}

    def parts() -> list[dict[str, Any]]:
        now = datetime.now(UTC)
        return [
            {
                "part": beat.part,
                "seconds": round(beat.age_seconds, 1),
                "since": (now - timedelta(seconds=beat.age_seconds)).isoformat(timespec="seconds"),
            }
            for beat in hung_here(settings)
        ]

    return HealthPage(database, parts)


def read_here(settings: Settings) -> ReadModels:
    """The read models; `status` lists this machine's problems first, `testbox` has its jobs."""

    def status(conn: Connection) -> dict[str, Any]:
        facts = read.status(conn)
        return facts | {"problems": problems_here(settings) + facts["problems"]}

    return cast(
        ReadModels,
        SimpleNamespace(
            **{name: getattr(read, name) for name in dir(read) if not name.startswith("_")}
            | {"status": status, "testbox": testbox_here(settings)}
        ),
    )
