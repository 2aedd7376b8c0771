"""Reports in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta

from swingbot.core.incident.model import FirstMail, Incident
from swingbot.core.model import ids
from swingbot.core.model.statuses import ReportKind
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.report.mails.digest import Improvement
from swingbot.core.report.mails.followup import Kind
from swingbot.service.ports.reports import NewReport, ReportOfIncident, WantedResult
from swingbot_db.store.outbox import bare
from tests.fakes.store.incidents import family_of, measured
from tests.fakes.store.tables import Noun, ReportRow, ResultMailRow

_FRESH = timedelta(minutes=10)  # a tip that was measured before is not new


class Reports(Noun):
    def reserve(self) -> int:
        return self.db.next_id("report")

    def next_revision(self, incident: int, kind: ReportKind) -> int:
        known = [
            r.revision for r in self.db.reports.values() if (r.incident, r.kind) == (incident, kind)
        ]
        return max(known, default=0) + 1

    def withdraw(
        self, incident: int, why: str, *kinds: ReportKind, queued: bool = True
    ) -> list[int]:
        states = ("draft", "held", "queued") if queued else ("draft", "held")
        gone = sorted(
            r.id
            for r in self.db.reports.values()
            if r.incident == incident and r.state in states and (not kinds or r.kind in kinds)
        )
        for number in gone:
            self.db.reports[number] = replace(
                self.db.reports[number], state="dropped", withdrawn=why
            )
        for number, row in self.db.sightings.items():
            if row.report in gone:
                self.db.sightings[number] = replace(row, report=None)
        return gone

    def _family(self, incident: int, kind: str) -> list[ReportRow]:
        family = family_of(self.db, incident)
        rows = (row for _, row in sorted(self.db.reports.items()))
        return [row for row in rows if row.incident in family and row.kind == kind]

    def of_incident(self, incident: int, kind: ReportKind) -> list[ReportOfIncident]:
        return [
            ReportOfIncident(row.id, row.state, row.withdrawn is not None)
            for row in self._family(incident, kind)
        ]

    def first_mail(self, incident: int) -> FirstMail | None:
        sent = [row for row in self._family(incident, "first") if row.sent_at is not None]
        row = min(
            sent, key=lambda row: (row.incident != incident, row.sent_at, row.id), default=None
        )
        if row is None:
            return None
        return FirstMail(
            report=row.id, message_id=row.message_id, subject=row.subject, message=row.message
        )

    def to_follow(self, still_days: float) -> list[tuple[int, Kind]]:
        found: set[tuple[int, Kind]] = set()
        for incident in self.db.incidents.values():
            sent = [r.sent_at for r in self._family(incident.id, "first") if r.sent_at is not None]
            if sent:
                found |= {
                    (incident.id, kind) for kind in self._due(incident, min(sent), still_days)
                }
        return sorted(found)

    def _due(self, incident: Incident, sent: datetime, days: float) -> Iterator[Kind]:
        def unsaid(kind: str) -> bool:
            return all(row.withdrawn is not None for row in self._family(incident.id, kind))

        if incident.status == "invalid" and unsaid("retraction"):
            yield "retraction"
        if incident.status == "fixed" and incident.fix_check is not None and unsaid("fixed"):
            yield "fixed"
        if incident.status == "open":
            rows = [row for row in self.db.sightings.values() if row.incident == incident.id]
            if any(row.report is None and measured(self.db, row) for row in rows):
                yield "update"
            if (
                days > 0
                and self._quiet(incident, sent, timedelta(days=days))
                and self._news(incident)
            ):
                yield "still"

    def _quiet(self, incident: Incident, sent: datetime, span: timedelta) -> bool:
        since = self.db.now() - span
        family = family_of(self.db, incident.id)
        mails = [r.created_at for r in self.db.reports.values() if r.incident in family]
        return sent < since and all(made < since for made in mails)

    def _news(self, incident: Incident) -> bool:
        trees = {
            self.db.variants[row.culprit].tree
            for row in self.db.sightings.values()
            if row.incident == incident.id
        }
        since = self.db.now() - _FRESH
        return any(
            row.comparison.tree in trees
            and (row.comparison.kind, row.comparison.status) == ("watch", "done")
            and row.ended_at is not None
            and row.ended_at > since
            for row in self.db.comparisons.values()
        )

    def add(self, new: NewReport) -> int:
        filing = new.filing
        row = ReportRow(
            id=new.number,
            incident=new.incident,
            kind=new.kind,
            revision=new.revision,
            message_id=new.message_id,
            subject=new.subject,
            message=new.message,
            state=new.state,
            created_at=self.db.begun,
            week=new.week,
            alert=new.alert,
            judged=filing.kind if filing else None,
            body=new.body,
            recipients=bare(new.to, new.cc),
            lists=tuple(map(str.lower, filing.addressed.lists)) if filing else (),
            next_try=self.db.begun,
            reason=filing.reason if filing else None,
        )
        if new.result is not None:
            wanted = self.db.result_mails[new.result]
            self.db.result_mails[new.result] = replace(wanted, report=new.number)
        older = next((old.id for old in self.db.reports.values() if _same(old, row)), None)
        if older is not None:
            return older
        self.db.reports[row.id] = row
        if row.kind in ("first", "update"):
            for key, seen in self.db.sightings.items():
                if (seen.incident, seen.report) == (row.incident, None) and measured(self.db, seen):
                    self.db.sightings[key] = replace(seen, report=row.id)
        return row.id

    def want_result(self, id: str, token: int | None) -> None:
        key = next(number for number, row in self.db.tokens.items() if row.digest is None)
        holder = key if token is None else token
        if all((row.id, row.token) != (id, holder) for row in self.db.result_mails.values()):
            number = self.db.next_id("result_mail")
            self.db.result_mails[number] = ResultMailRow(id=id, token=holder)

    def wanted_results(self) -> list[WantedResult]:
        return [
            WantedResult(number, row.id, self.db.tokens[row.token].person.mail)
            for number, row in sorted(self.db.result_mails.items())
            if row.report is None and self._may_get(row) and self._is_over(row.id)
        ]

    def _may_get(self, row: ResultMailRow) -> bool:
        token = self.db.tokens[row.token]
        return token.digest is None or token.is_valid(self.db.now())

    def _is_over(self, id: str) -> bool:
        kind, number = ids.read(id)
        if kind == "bisection":
            return self.db.bisections[number].bisection.status != "running"
        return not self.db.comparisons[number].comparison.open

    def class_record(self, kind: ReportClass) -> ClassRecord:
        last = {
            row.report: row.act
            for row in self.db.decisions.values()
            if row.report is not None and row.counts and row.act in ("release", "drop")
        }
        acts = [last.get(r.id) for r in self.db.reports.values() if r.judged == kind]
        return ClassRecord(released=acts.count("release"), dropped=acts.count("drop"))

    def digest_weeks(self, since: date) -> set[date]:
        weeks = (row.week for row in self.db.reports.values())
        return {week for week in weeks if week is not None and week >= since}

    def digest_week(self, report: int) -> date | None:
        return self.db.reports[report].week

    def improvements_between(self, begin: datetime, end: datetime) -> list[Improvement]:
        found = []
        for swing in (row.swing for row in self.db.swings.values()):
            own = self.db.comparisons[swing.comparison]
            proof = None if swing.proof is None else self.db.comparisons[swing.proof]
            ended = (proof.ended_at if proof else None) or own.ended_at
            if (
                swing.direction != "better"
                or swing.state not in ("not_bisected", "not_found")
                or ended is None
                or not begin <= ended < end
            ):
                continue
            tree = self.db.trees[own.comparison.tree].tree
            search = self.db.bisections.get(swing.bisection or 0)
            status = search.bisection.status if search else None
            if status == "not_reproduced":
                continue
            said = dict(search.conclusion or {}) if search else {}
            pct = said.get("change_pct") if status in ("credible_set", "creep") else None
            base = self.db.variants[own.comparison.base].commit
            head = self.db.variants[own.comparison.head].commit
            if pct is not None and status == "credible_set":
                base = said["culprits"][0]["parent"]
                head = said["members"][-1]["commit"]
            found.append(
                Improvement(
                    tree=tree.name,
                    branch=tree.branch,
                    testbox=swing.testbox,
                    label=str(self.db.testboxes[swing.testbox].facts.get("label", "")),
                    unit_job=swing.unit_job,
                    metric=swing.metric,
                    change_pct=swing.change_pct if pct is None else pct,
                    base=base,
                    head=head,
                    page=f"/comparison/{ids.show('comparison', swing.comparison)}",
                )
            )
        return found


def _same(old: ReportRow, new: ReportRow) -> bool:
    if new.incident is None:
        return (new.week is not None and old.week == new.week) or (
            new.alert is not None and (old.alert, old.revision) == (new.alert, new.revision)
        )
    if old.incident != new.incident or old.kind != new.kind:
        return False
    return old.revision == new.revision or (new.kind == "first" and old.state != "dropped")
