"""Database operations of the moderation pages, one transaction per decision."""

from __future__ import annotations

from datetime import UTC, datetime

from swingbot.core.access.roles import on_web
from swingbot.core.model import ids
from swingbot.core.model.statuses import ReportAct, ReportState
from swingbot.service.report.decide import decide, switch_mail
from swingbot_db.engine import Engine
from swingbot_db.store import transactions


class DatabaseModerator:
    """Implements `swingbot.web.pages.moderation.Moderator`."""

    def __init__(self, engine: Engine) -> None:
        self._begin = transactions(engine)

    def decide(self, report: str, act: ReportAct, *, who: str, why: str) -> ReportState:
        number = ids.read(report, "report")[1]
        with self._begin("decide") as tx:
            return decide(tx.outbox, number, act, datetime.now(UTC), who=on_web(who), why=why)

    def switch(self, *, stopped: bool, who: str, why: str) -> None:
        with self._begin("switch mail") as tx:
            switch_mail(tx.outbox, stopped, who=on_web(who), why=why)
