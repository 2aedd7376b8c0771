"""Incidents: one per culprit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from swingbot.core.incident.model import Expected, Incident
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import IncidentAct, IncidentStatus


class Incidents(Protocol):
    """Incidents: one per culprit."""

    def expected_changes(self, testbox: str, unit_job: str, metric: str) -> list[Expected]:
        """Return the changes of this metric that people declared as expected, with the commits that
        make them, by incident and commit.
        """

    def add(self, tree: int, culprit: int) -> int:
        """Return the number of this culprit's incident, creating it on the first call."""

    def get(self, number: int) -> Incident | None:
        """Return an incident, locked until this transaction ends; None if it does not exist."""

    def of_culprit(self, tree: int, culprit: int) -> Incident | None:
        """Return the incident of this culprit, not locked; None if there is none."""

    def in_status(self, *statuses: IncidentStatus) -> list[Incident]:
        """Return the incidents in one of these statuses, by number, not locked."""

    def set_status(
        self, number: int, status: IncidentStatus, merged_into: int | None = None
    ) -> None:
        """Set the status, and the incident that a duplicate is merged into (None for all
        others).
        """

    def set_fix(self, number: int, commit: str | None, check: int | None) -> None:
        """Set the commit that is named as the fix, and the comparison that checks it."""

    def add_event(
        self,
        incident: int,
        act: IncidentAct,
        who: str,
        reason: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Add an entry to the history of an incident: the act, who and why."""

    def last_event(
        self, incident: int, act: IncidentAct
    ) -> tuple[str | None, Mapping[str, Any]] | None:
        """Return (reason, detail) of the latest event of this act; None if there is none."""

    def comparisons_being_attributed(self) -> list[int]:
        """Return comparisons, unordered, whose swing led to a culprit of an open incident that is
        not yet measured against its parent: their other swings wait for that.
        """

    def to_report(self) -> list[tuple[int, int]]:
        """Return (incident, comparison) of open incidents that are measured and have no first mail,
        by number. Locks these incidents, so that acts of people wait.
        """

    def bisections(self, incident: int) -> list[int]:
        """Return the bisections of an incident: the one behind its own comparison first, then by
        number.
        """

    def rows(self, incident: int, comparison: int) -> list[ComparisonRow]:
        """Return the rows of `comparison`, then those of the incident's other comparisons that the
        first lacks (by testbox, unit job and metric).
        """

    def replace_comparison(self, incident: int, old: int, new: int) -> None:
        """Replace comparison `old` by `new` in the incident and in the sightings that share it.

        A second call changes nothing.
        """
