"""Incidents: one per culprit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from swingbot.core.incident.model import Expected, Incident, Status


class Incidents(Protocol):
    """Incidents: one per culprit."""

    def expected_changes(self, testbox: str, unit_job: str, metric: str) -> list[Expected]:
        """Changes of this metric that people said to expect, with the commits that make them."""

    def add(self, tree: int, culprit: int) -> int: ...

    def get(self, number: int) -> Incident | None:
        """The incident, which nobody else changes until this transaction is over."""

    def of_culprit(self, tree: int, culprit: int) -> Incident | None: ...

    def in_status(self, *statuses: Status) -> list[Incident]: ...

    def set_status(self, number: int, status: Status, merged_into: int | None = None) -> None: ...

    def set_fix(self, number: int, commit: str | None, check: int | None) -> None: ...

    def add_event(
        self,
        incident: int,
        act: str,
        who: str,
        reason: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None: ...

    def last_event(self, incident: int, act: str) -> tuple[str | None, Mapping[str, Any]] | None:
        """(reason, detail) of the latest event of that kind."""

    def comparisons_being_attributed(self) -> list[int]:
        """Comparisons whose swing led to a culprit that is not yet measured against its parent: their other swings wait for that."""

    def to_report(self) -> list[tuple[int, int]]:
        """(incident, comparison) of open incidents that are measured and of which no first mail was written."""

    def bisections(self, incident: int) -> list[int]:
        """The one behind the incident's own comparison first."""

    def rows(self, incident: int, comparison: int) -> list[dict[str, Any]]:
        """The rows of its own comparison, then those of further ones: jobs and testboxes that the first has not."""

    def replace_comparison(self, incident: int, old: int, new: int) -> None:
        """Let another comparison of parent and culprit stand for the incident, and for the sightings that shared the old one."""
