"""An incident and its sightings, as stored. Ids are plain numbers, commits 40 hex digits."""

from __future__ import annotations

from dataclasses import dataclass

from swingbot.core.model.statuses import IncidentStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One culprit and its status.

    `comparison` is that of the first sighting, `merged_into` the incident that a duplicate belongs
    to. `fix_check` is the comparison that shows whether `fixed_by` restored the level; None while
    no tip has that commit.
    """

    id: int
    tree: int
    culprit: int  # variant
    commit: str
    status: IncidentStatus
    comparison: int | None = None
    merged_into: int | None = None
    fixed_by: str | None = None
    fix_check: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A culprit as one bisection found it.

    `patch_id` is that of `git patch-id --verbatim`: "" for a commit without one (merge, root,
    empty), None if not computed yet. `comparison` is that with its parent, `report` the mail about
    it.
    """

    id: int
    incident: int
    bisection: int
    culprit: int  # variant
    tree: int
    commit: str
    patch_id: str | None = None
    comparison: int | None = None
    report: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A change of one metric, from `commit` on, that a person declared expected."""

    incident: int
    commit: str
    patch_id: str | None
    change_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMail:
    """The first mail of an incident's thread, as it was sent."""

    report: int
    message_id: str
    subject: str
    message: bytes
