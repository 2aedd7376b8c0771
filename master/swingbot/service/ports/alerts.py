"""Alerts to the operator."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.plan.alerts import InvalidRuns, Queue, Subject
from swingbot.core.report.mails.alert import Alert


class Alerts(Protocol):
    """Alerts to the operator."""

    def open(self) -> set[Subject]: ...

    def begin(self, subject: Subject, reason: str) -> tuple[int, Alert]: ...

    def end(self, subject: Subject) -> tuple[int, Alert]: ...

    def invalid_runs(self) -> list[InvalidRuns]:
        """Of the last boots of each testbox."""

    def queue_stillness(self) -> Queue:
        """Orders that may begin or have begun, and seconds since the later of: the oldest of them came, the last attempt ended."""
