"""Database operations of the moderation pages, one transaction per decision."""

from __future__ import annotations

from swingbot.core.model import ids
from swingbot.core.model.statuses import ReportAct
from swingbot_db import moderation, reports
from swingbot_db.engine import Engine


class DatabaseModerator:
    """Implements `swingbot.web.pages.moderation.Moderator`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def decide(self, report: str, act: ReportAct, *, who: str, why: str) -> None:
        with self._engine.begin() as conn:
            reports.ACTS[act](conn, ids.read(report, "report")[1], who=f"{who} (web)", why=why)

    def switch(self, *, stopped: bool, who: str, why: str) -> None:
        with self._engine.begin() as conn:
            moderation.set_switch(conn, stopped=stopped, who=f"{who} (web)", why=why)
