"""Alerts to the operator."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.plan.alerts import AlertSubject, InvalidRuns, QueueState
from swingbot.core.report.mails.alert import Alert


class Alerts(Protocol):
    """Alerts to the operator."""

    def open(self) -> set[AlertSubject]:
        """What the operator was alerted to and is not over."""

    def begin(self, subject: AlertSubject, reason: str) -> tuple[int, Alert]:
        """Begin an alert and return (id, alert). Fails if one of this subject is open."""

    def end(self, subject: AlertSubject) -> tuple[int, Alert]:
        """End the open alert of a subject and return (id, alert). Fails if there is none."""

    def invalid_runs(self) -> list[InvalidRuns]:
        """Of each testbox that is not gone: runs of its last 20 boots, how many are invalid, and the latest reason. One without runs is absent."""

    def queue_stillness(self) -> QueueState:
        """How many orders are ready or running on active testboxes, the oldest of them, and seconds since the later of: the oldest came, the last attempt ended."""
