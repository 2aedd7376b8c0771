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
        """Changes of this metric that people said to expect, with the commits that make them, by incident and commit."""

    def add(self, tree: int, culprit: int) -> int:
        """The number of the incident of this culprit, stored by the first call."""

    def get(self, number: int) -> Incident | None:
        """An incident, which nobody else changes until this transaction ends; None if there is none."""

    def of_culprit(self, tree: int, culprit: int) -> Incident | None:
        """The incident of this culprit, not locked; None if there is none."""

    def in_status(self, *statuses: IncidentStatus) -> list[Incident]:
        """Incidents in one of these statuses, by number, not locked."""

    def set_status(
        self, number: int, status: IncidentStatus, merged_into: int | None = None
    ) -> None:
        """Set the status, and what a duplicate is merged into; any other has None there."""

    def set_fix(self, number: int, commit: str | None, check: int | None) -> None:
        """Set the commit that is said to fix it, and the comparison that checks it."""

    def add_event(
        self,
        incident: int,
        act: IncidentAct,
        who: str,
        reason: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Add an entry to the history of an incident: what was done, by whom and why."""

    def last_event(
        self, incident: int, act: IncidentAct
    ) -> tuple[str | None, Mapping[str, Any]] | None:
        """(reason, detail) of the latest event of this act; None if there is none."""

    def comparisons_being_attributed(self) -> list[int]:
        """Comparisons whose swing led to a culprit of an open incident that is not yet measured against its parent: their other swings wait for that. In no order."""

    def to_report(self) -> list[tuple[int, int]]:
        """(incident, comparison) of open incidents that are measured and of which no first mail was written, by number. Locks these incidents: what a person says meanwhile waits."""

    def bisections(self, incident: int) -> list[int]:
        """Bisections of an incident: the one behind its own comparison first, then by number."""

    def rows(self, incident: int, comparison: int) -> list[ComparisonRow]:
        """Rows of `comparison`, then those of further ones of the incident that the first has not (by testbox, unit job and metric)."""

    def replace_comparison(self, incident: int, old: int, new: int) -> None:
        """Let comparison `new` stand where `old` does: for the incident, and for the sightings that shared it. A second call changes nothing."""
