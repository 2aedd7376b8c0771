"""Alerts to the operator."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.plan.alerts import AlertSubject, InvalidRuns, QueueState
from swingbot.core.report.mails.alert import Alert


class Alerts(Protocol):
    """Alerts to the operator."""

    def open(self) -> set[AlertSubject]:
        """Return the subjects of open alerts."""

    def begin(self, subject: AlertSubject, reason: str) -> tuple[int, Alert]:
        """Open an alert and return (id, alert). Fails if one on this subject is open."""

    def end(self, subject: AlertSubject) -> tuple[int, Alert]:
        """Close the open alert on a subject and return (id, alert). Fails if there is none."""

    def invalid_runs(self) -> list[InvalidRuns]:
        """Return for each testbox that is not gone: the number of runs in its last 20 boots, how
        many are invalid, and the latest reason. A testbox without runs is absent.
        """

    def queue_stillness(self) -> QueueState:
        """Return the number of orders that are ready or running on active testboxes, the oldest of
        them, and the seconds since the arrival of the oldest or the end of the last attempt,
        whichever is later.
        """
