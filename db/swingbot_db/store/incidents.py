"""Incidents, where their commits were found, what people decided, and the reports about them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.incident.model import Expected, FirstMail, Incident, Sighting, Status
from swingbot.core.model.records import Comparison, Swing
from swingbot.core.moderation.filing import Filing
from swingbot.core.report.mails.followup import Kind
from swingbot.core.stats.row import key_of
from swingbot_db import reports
from swingbot_db.store.comparisons import ComparisonRows
from swingbot_db.store.kernels import KernelRows

# From each bisection `low` to itself and to those above it, of whose blamed merge it searches the branch.
UPWARDS: Final = """WITH RECURSIVE upwards AS (SELECT id AS low, id, parent FROM bisection
  UNION ALL SELECT u.low, b.id, b.parent FROM upwards u JOIN bisection b ON b.id = u.parent)"""
# Each incident `root` with itself and all that were merged into it: they share one thread of mails.
FAMILY: Final = """WITH RECURSIVE family AS (SELECT id AS root, id FROM incident
  UNION SELECT f.root, i.id FROM family f JOIN incident i ON i.merged_into = f.id)"""
_SIGHTINGS: Final = """SELECT s.id, s.incident, s.bisection, s.culprit, v.tree, v.commit, s.patch_id, s.comparison, s.report
  FROM sighting s JOIN variant v ON v.id = s.culprit JOIN incident i ON i.id = s.incident JOIN bisection b ON b.id = s.bisection
  LEFT JOIN comparison c ON c.id = s.comparison WHERE {where} ORDER BY s.id"""
_OVER: Final = "c.status IN ('done', 'failed')"
# A first mail waits for all that is being measured of its culprit; whatever is found later is told by an update.
_TO_REPORT: Final = f"""{FAMILY} SELECT i.id, i.comparison FROM incident i JOIN comparison c ON c.id = i.comparison AND {_OVER}
  WHERE i.status = 'open'
    AND NOT EXISTS (SELECT FROM report r JOIN family f ON f.id = r.incident WHERE f.root = i.id AND r.kind = 'first' AND r.withdrawn IS NULL)
    AND EXISTS (SELECT FROM sighting s WHERE s.incident = i.id AND s.report IS NULL)
    AND NOT EXISTS (SELECT FROM sighting s JOIN bisection b ON b.id = s.bisection LEFT JOIN comparison o ON o.id = s.comparison
                    WHERE s.incident = i.id AND b.origin = 'watch' AND (o.id IS NULL OR o.status IN ('waiting', 'running')))
  ORDER BY i.id FOR UPDATE OF i"""  # what a person says meanwhile waits, and finds the mail that was written
_EXPECTED: Final = """SELECT i.id AS incident, v.commit, min(s.patch_id) AS patch_id,
    (array_agg(coalesce(r.change_pct, found.pct) ORDER BY r.change_pct IS NULL, s.id DESC))[1] AS change_pct
  FROM incident i JOIN sighting s ON s.incident = i.id JOIN variant v ON v.id = s.culprit JOIN bisection b ON b.id = s.bisection
  LEFT JOIN comparison_row r ON r.comparison = s.comparison AND (r.testbox, r.unit_job, r.metric) = (:box, :job, :metric)
    AND r.verdict IN ('worse', 'better', 'changed')
  LEFT JOIN LATERAL (SELECT (c ->> 'change_pct')::double precision AS pct FROM jsonb_array_elements(b.conclusion -> 'culprits') c
    WHERE c ->> 'commit' = v.commit AND (b.testbox, b.unit_job, b.metric) = (:box, :job, :metric) LIMIT 1) found ON true
  WHERE i.status = 'expected' AND coalesce(r.change_pct, found.pct) IS NOT NULL GROUP BY i.id, v.commit ORDER BY i.id, v.commit"""
# What the thread of a sent first mail has to say now. A tip that was measured a while ago is no news: `still` looks at fresh ones only.
_TO_FOLLOW: Final = f"""{FAMILY},
  mail AS (SELECT f.root, r.kind, r.state, r.withdrawn, r.created_at, r.sent_at FROM report r JOIN family f ON f.id = r.incident),
  begun AS (SELECT i.id, i.status, i.fix_check, min(m.sent_at) AS sent_at FROM incident i JOIN mail m ON m.root = i.id AND m.kind = 'first' AND m.state = 'sent'
            WHERE i.status IN ('open', 'fixed', 'invalid') GROUP BY i.id)
  SELECT b.id, 'retraction' AS kind FROM begun b WHERE b.status = 'invalid'
    AND NOT EXISTS (SELECT FROM mail m WHERE m.root = b.id AND m.kind = 'retraction' AND m.withdrawn IS NULL)
  UNION ALL SELECT b.id, 'fixed' FROM begun b WHERE b.status = 'fixed' AND b.fix_check IS NOT NULL
    AND NOT EXISTS (SELECT FROM mail m WHERE m.root = b.id AND m.kind = 'fixed' AND m.withdrawn IS NULL)
  UNION ALL SELECT DISTINCT b.id, 'update' FROM begun b JOIN sighting s ON s.incident = b.id AND s.report IS NULL JOIN comparison c ON c.id = s.comparison
    WHERE b.status = 'open' AND {_OVER}
  UNION ALL SELECT b.id, 'still' FROM begun b WHERE b.status = 'open' AND :days > 0
    AND b.sent_at < clock_timestamp() - make_interval(secs => 86400 * :days)
    AND NOT EXISTS (SELECT FROM mail m WHERE m.root = b.id AND m.created_at >= clock_timestamp() - make_interval(secs => 86400 * :days))
    AND EXISTS (SELECT FROM sighting s JOIN variant v ON v.id = s.culprit JOIN comparison c ON c.tree = v.tree AND c.kind = 'watch' AND c.status = 'done'
                WHERE s.incident = b.id AND c.ended_at > clock_timestamp() - interval '10 minutes')
  ORDER BY 1, 2"""


class SightingRows(KernelRows, ComparisonRows):
    def sightings(self, incident: int) -> list[Sighting]:
        return self._sightings("s.incident = :i", i=incident)

    def sightings_like(self, commit: str, patch_id: str | None) -> list[Sighting]:
        """All of this commit or patch, in whatever tree."""
        return self._sightings(
            "v.commit = :commit OR (s.patch_id <> '' AND s.patch_id = :patch)",
            commit=commit,
            patch=patch_id or None,
        )

    def sightings_to_identify(self) -> list[Sighting]:
        return self._sightings("s.patch_id IS NULL")

    def sightings_to_attribute(self) -> list[Sighting]:
        """Found by watching, and not measured against the parent yet."""
        return self._sightings("s.comparison IS NULL AND i.status = 'open' AND b.origin = 'watch'")

    def sightings_to_tell(self) -> list[Sighting]:
        """Of open incidents, measured against the parent, and in no mail yet."""
        return self._sightings(f"s.report IS NULL AND i.status = 'open' AND {_OVER}")

    def _sightings(self, where: str, **values: Any) -> list[Sighting]:
        return [
            Sighting(**row._mapping) for row in self.all(_SIGHTINGS.format(where=where), **values)
        ]

    def add_sighting(
        self, incident: int, bisection: int, culprit: int, patch_id: str | None
    ) -> bool:
        """False if it was noted before."""
        new = self.do(
            "INSERT INTO sighting (incident, bisection, culprit, patch_id) VALUES (:i, :b, :v, :p) ON CONFLICT DO NOTHING",
            i=incident,
            b=bisection,
            v=culprit,
            p=patch_id,
        )
        self.do(
            "INSERT INTO incident_bisection (incident, bisection) VALUES (:i, :b) ON CONFLICT DO NOTHING",
            i=incident,
            b=bisection,
        )
        return new == 1

    def identify(self, sighting: int, patch_id: str) -> None:
        self.do(
            "UPDATE sighting SET patch_id = :p WHERE id = :s AND patch_id IS NULL",
            s=sighting,
            p=patch_id,
        )

    def set_sighting(self, sighting: int, comparison: int, report: int | None = None) -> None:
        """Which comparison measured it, and the mail that told of that comparison already."""
        self.do(
            "UPDATE sighting SET comparison = :c, report = :r WHERE id = :s AND comparison IS NULL",
            s=sighting,
            c=comparison,
            r=report,
        )
        self.do(
            "UPDATE incident SET comparison = :c WHERE comparison IS NULL AND id = (SELECT incident FROM sighting WHERE id = :s)",
            s=sighting,
            c=comparison,
        )

    def tell_sightings(self, incident: int, report: int) -> None:
        """`report` tells of all that is measured."""
        self.do(
            f"UPDATE sighting SET report = :r FROM comparison c WHERE incident = :i AND report IS NULL AND c.id = comparison AND {_OVER}",
            i=incident,
            r=report,
        )

    def move_sightings(self, sightings: Sequence[int], incident: int) -> None:
        """Make them those of `incident`, and its bisections with them."""
        self.do(
            "UPDATE sighting SET incident = :i WHERE id = ANY(:s)", i=incident, s=list(sightings)
        )
        self.do(
            "INSERT INTO incident_bisection (incident, bisection) SELECT incident, bisection FROM sighting WHERE id = ANY(:s) ON CONFLICT DO NOTHING",
            s=list(sightings),
        )
        self.do(
            "DELETE FROM incident_bisection ib WHERE NOT EXISTS (SELECT FROM sighting s WHERE (s.incident, s.bisection) = (ib.incident, ib.bisection))"
        )
        self.do(
            "UPDATE incident SET comparison = (SELECT comparison FROM sighting WHERE incident = :i AND comparison IS NOT NULL ORDER BY id LIMIT 1)"
            " WHERE id = :i AND comparison IS NULL",
            i=incident,
        )

    def expected_changes(self, testbox: str, unit_job: str, metric: str) -> list[Expected]:
        """Changes of this metric that people said to expect, with the commits that make them."""
        return [
            Expected(**row._mapping)
            for row in self.all(_EXPECTED, box=testbox, job=unit_job, metric=metric)
        ]


class IncidentRows(SightingRows):
    def new_incident(self, tree: int, culprit: int) -> int:
        self.do(
            "INSERT INTO incident (tree, culprit) VALUES (:tree, :culprit) ON CONFLICT DO NOTHING",
            tree=tree,
            culprit=culprit,
        )
        return int(
            self.value(
                "SELECT id FROM incident WHERE tree = :tree AND culprit = :culprit",
                tree=tree,
                culprit=culprit,
            )
        )

    def incident(self, number: int) -> Incident | None:
        """The incident, which nobody else changes until this transaction is over."""
        found = self._incidents("i.id = :id", "FOR UPDATE OF i", id=number)
        return found[0] if found else None

    def incident_of(self, tree: int, culprit: int) -> Incident | None:
        found = self._incidents(
            "i.tree = :tree AND i.culprit = :culprit", tree=tree, culprit=culprit
        )
        return found[0] if found else None

    def incidents_with(self, *statuses: Status) -> list[Incident]:
        return self._incidents("i.status = ANY(:statuses)", statuses=list(statuses))

    def _incidents(self, where: str, more: str = "", **values: Any) -> list[Incident]:
        rows = self.all(
            "SELECT i.id, i.tree, i.culprit, v.commit, i.status, i.comparison, i.merged_into, i.fixed_by, i.fix_check"
            f" FROM incident i JOIN variant v ON v.id = i.culprit WHERE {where} ORDER BY i.id {more}",
            **values,
        )
        return [Incident(**row._mapping) for row in rows]

    def set_incident(self, number: int, status: Status, merged_into: int | None = None) -> None:
        self.do(
            "UPDATE incident SET status = :status, merged_into = :into WHERE id = :id",
            id=number,
            status=status,
            into=merged_into,
        )

    def set_fix(self, number: int, commit: str | None, check: int | None) -> None:
        self.do(
            "UPDATE incident SET fixed_by = :commit, fix_check = :check WHERE id = :id",
            id=number,
            commit=commit,
            check=check,
        )

    def add_event(
        self,
        incident: int,
        act: str,
        who: str,
        reason: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        self.do(
            "INSERT INTO incident_event (incident, act, who, reason, detail) VALUES (:i, :act, :who, :reason, CAST(:detail AS jsonb))",
            i=incident,
            act=act,
            who=who,
            reason=reason,
            detail=json.dumps(detail or {}),
        )

    def last_event(self, incident: int, act: str) -> tuple[str | None, Mapping[str, Any]] | None:
        """(reason, detail) of the latest event of that kind."""
        row = self.first(
            "SELECT reason, detail FROM incident_event WHERE incident = :i AND act = :act ORDER BY id DESC LIMIT 1",
            i=incident,
            act=act,
        )
        return (row.reason, row.detail) if row else None

    def comparisons_being_attributed(self) -> list[int]:
        """Comparisons whose swing led to a culprit that is not yet measured against its parent: their other swings wait for that."""
        rows = self.all(
            f"{UPWARDS} SELECT DISTINCT s.comparison FROM swing s JOIN upwards u ON u.id = s.bisection"
            " JOIN sighting g ON g.bisection = u.low JOIN incident i ON i.id = g.incident"
            " LEFT JOIN comparison c ON c.id = g.comparison WHERE i.status = 'open' AND (c.id IS NULL OR c.status IN ('waiting', 'running'))"
        )
        return [row.comparison for row in rows]

    def incidents_to_report(self) -> list[tuple[int, int]]:
        """(incident, comparison) of open incidents that are measured and of which no first mail was written."""
        return [(row.id, row.comparison) for row in self.all(_TO_REPORT)]

    def bisections_of_incident(self, incident: int) -> list[int]:
        """The one behind the incident's own comparison first."""
        rows = self.all(
            "SELECT ib.bisection FROM incident_bisection ib JOIN incident i ON i.id = ib.incident LEFT JOIN sighting s ON s.bisection = ib.bisection"
            " AND s.incident = i.id AND s.comparison = i.comparison WHERE i.id = :i GROUP BY ib.bisection ORDER BY count(s.id) = 0, ib.bisection",
            i=incident,
        )
        return [row.bisection for row in rows]

    def rows_of_incident(self, incident: int, comparison: int) -> list[dict[str, Any]]:
        """The rows of its own comparison, then those of further ones: jobs and testboxes that the first has not."""
        found = self.rows(comparison)
        seen = {key_of(row) for row in found}
        for other in dict.fromkeys(
            s.comparison for s in self.sightings(incident) if s.comparison not in (None, comparison)
        ):
            assert other is not None
            more = [row for row in self.rows(other) if key_of(row) not in seen]
            seen |= {key_of(row) for row in more}
            found += more
        return found

    def conclusion(self, bisection: int) -> dict[str, Any]:
        found = self.value("SELECT conclusion FROM bisection WHERE id = :b", b=bisection)
        assert isinstance(found, dict)
        return found

    def swings_of_bisection(self, bisection: int) -> list[Swing]:
        """Swings that it was opened for; those of the bisection whose blamed merge it searches are its own too."""
        own = set(
            self.conn.execute(
                sa.text(f"{UPWARDS} SELECT id FROM upwards WHERE low = :b"), {"b": bisection}
            ).scalars()
        )
        return [
            swing
            for swing in self.swings("open", "bisecting", "explained", "noted", "not_found")
            if swing.bisection in own
        ]

    def boot_facts(self, image: str, testbox: str) -> dict[str, Any]:
        found = self.value(
            "SELECT facts FROM boot WHERE image_sha256 = :image AND testbox = :box AND outcome = 'up' ORDER BY id DESC LIMIT 1",
            image=image,
            box=testbox,
        )
        return dict(found or {})

    def reserve_report(self) -> int:
        """The number of a report that is about to be written; its mail names it."""
        return reports.reserve_report_id(self.conn)

    def next_revision(self, incident: int, kind: str) -> int:
        return int(
            self.value(
                "SELECT coalesce(max(revision), 0) + 1 FROM report WHERE incident = :i AND kind = :k",
                i=incident,
                k=kind,
            )
        )

    def withdraw_reports(
        self, incident: int, why: str, *kinds: str, queued: bool = True
    ) -> list[int]:
        """Drop what has not left (of these kinds; all if none is named); it may be written anew. Mails that are being sent are not touched."""
        states = ["draft", "held", *(["queued"] if queued else [])]
        gone = self.all(
            "UPDATE report SET state = 'dropped', withdrawn = :why WHERE incident = :i AND state = ANY(:states) AND (:all OR kind = ANY(:kinds)) RETURNING id",
            i=incident,
            why=why,
            states=states,
            all=not kinds,
            kinds=list(kinds),
        )
        numbers = sorted(row.id for row in gone)
        self.do("UPDATE sighting SET report = NULL WHERE report = ANY(:r)", r=numbers)
        return numbers

    def reports_of(self, incident: int, kind: str) -> list[tuple[int, str, bool]]:
        """(id, state, withdrawn) of an incident's reports of a kind, and of those merged into it."""
        rows = self.all(
            f"{FAMILY} SELECT r.id, r.state, r.withdrawn IS NOT NULL AS withdrawn FROM report r JOIN family f ON f.id = r.incident"
            " WHERE f.root = :i AND r.kind = :k ORDER BY r.id",
            i=incident,
            k=kind,
        )
        return [(row.id, row.state, row.withdrawn) for row in rows]

    def first_mail(self, incident: int) -> FirstMail | None:
        """The mail that began the thread: the incident's own where it was sent, else that of one that was merged into it."""
        row = self.first(
            f"{FAMILY} SELECT r.id, r.message_id, r.subject, o.message FROM report r JOIN family f ON f.id = r.incident JOIN outbox o ON o.report = r.id"
            " WHERE f.root = :i AND r.kind = 'first' AND r.state = 'sent' ORDER BY r.incident <> :i, r.sent_at, r.id LIMIT 1",
            i=incident,
        )
        if row is None:
            return None
        return FirstMail(
            report=row.id,
            message_id=row.message_id,
            subject=row.subject,
            message=bytes(row.message),
        )

    def incidents_to_follow(self, still_days: float) -> list[tuple[int, Kind]]:
        """(incident, kind of short mail) of those whose first mail was sent and that have something to say; `still` every `still_days` at most, 0: never."""
        return [(row.id, row.kind) for row in self.all(_TO_FOLLOW, days=still_days)]

    def latest_tip(self, tree: int) -> Comparison | None:
        """The comparison of the tree's latest tip that is measured."""
        number = self.value(
            "SELECT max(id) FROM comparison WHERE tree = :tree AND kind = 'watch' AND status = 'done'",
            tree=tree,
        )
        return self.comparison(number) if number is not None else None

    def add_report(
        self,
        *,
        number: int,
        incident: int | None,
        kind: str,
        revision: int,
        message_id: str,
        to: Sequence[str],
        subject: str,
        body: str,
        message: bytes,
        state: str,
        cc: Sequence[str] = (),
        filing: Filing | None = None,
        week: date | None = None,
        facts: Mapping[str, Any] | None = None,
        alert: int | None = None,
    ) -> int:
        stored = reports.add_report(
            self.conn,
            id=number,
            incident=incident,
            kind=kind,
            revision=revision,
            message_id=message_id,
            to=to,
            cc=cc,
            subject=subject,
            body=body,
            message=message,
            state=state,
            filing=filing,
            week=week,
            facts=facts,
            alert=alert,
        )
        if incident is not None and stored == number and kind in ("first", "update"):
            self.tell_sightings(incident, number)
        return stored
