"""What each testbox does, since when and why; who holds it and until when; what the operator is told about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model.box import Box, BoxState, Event, Told, after
from swingbot.core.plan.alerts import InvalidRuns, Queue, Subject
from swingbot.core.plan.boxes import Lapse, Screening, refusal
from swingbot.core.report.mails.alert import Alert
from swingbot_db.store.rows import Rows

KEPT_EVENTS: Final = 5000  # of one testbox; a busy one makes four a boot
# A renewal is written when it is worth this much: an executor asks every 5 s, the row need not change each time.
RENEW_SECONDS: Final = 15.0

LATEST_BOOTS: Final = 20  # of a testbox, whose invalid runs are counted

_ALERT = "id, kind, testbox, reason, began_at, ended_at"
# Of an attempt on a cluster several rows: the one of the testbox that its order names comes first.
_OWN_FIRST = "FROM lease l JOIN attempt a ON a.id = l.attempt JOIN orders o ON o.id = a.order_id WHERE l.attempt = :a ORDER BY l.testbox <> o.testbox, l.testbox"
_BOX = "n.testbox, n.state, n.why, n.attempt, n.failures, n.down"


class BoxRows(Rows):
    def boxes(self) -> list[Box]:
        return [
            _box(row) for row in self.all(f"SELECT {_BOX} FROM testbox_now n ORDER BY n.testbox")
        ]

    def box(self, testbox: str) -> Box:
        """As it is now, and nobody else changes it before this transaction ends; a new one idles."""
        self.do(
            "INSERT INTO testbox_now (testbox) VALUES (:box) ON CONFLICT DO NOTHING", box=testbox
        )
        row = self.first(
            f"SELECT {_BOX} FROM testbox_now n WHERE n.testbox = :box FOR UPDATE", box=testbox
        )
        assert row is not None
        return _box(row)

    def move_box(self, testbox: str, event: Event) -> Box:
        """The testbox after `event`; kept with time, reason and attempt if that changed anything."""
        was = self.box(testbox)
        barred = self.value(
            "SELECT state = 'quarantined' FROM testbox WHERE name = :box", box=testbox
        )
        now = after(was, event, barred=bool(barred))
        if now != was:
            self._put(was, now)
        return now

    def _put(self, was: Box, now: Box) -> None:
        self.do(
            "UPDATE testbox_now SET state = :state, why = :why, attempt = :attempt, failures = :failures, down = :down,"
            " since = CASE WHEN state = :state AND attempt IS NOT DISTINCT FROM :attempt THEN since ELSE clock_timestamp() END WHERE testbox = :box",
            box=now.testbox,
            state=now.state.value,
            why=now.why,
            attempt=now.attempt,
            failures=now.failures,
            down=now.down,
        )
        if (now.state, now.why, now.attempt) != (was.state, was.why, was.attempt):
            self.note_box(
                now.testbox, was.state.value, now.state.value, now.why, now.attempt or was.attempt
            )

    def note_box(self, testbox: str, was: str, state: str, why: str, attempt: int | None) -> None:
        number = self.value(
            "INSERT INTO testbox_event (testbox, was, state, why, attempt) VALUES (:box, :was, :state, :why, :attempt) RETURNING id",
            box=testbox,
            was=was,
            state=state,
            why=why,
            attempt=attempt,
        )
        if number % 500 == 0:
            self.do(
                "DELETE FROM testbox_event WHERE testbox = :box AND id < (SELECT min(id) FROM"
                " (SELECT id FROM testbox_event WHERE testbox = :box ORDER BY id DESC LIMIT :kept) e)",
                box=testbox,
                kept=KEPT_EVENTS,
            )

    # Leases: a row of `lease` says which attempt has the testbox; its holder is the controller that drives it, heard of until then.
    def hold(self, attempt: int, controller: str, seconds: float) -> str | None:
        """Take or renew the lease of the attempt's testbox for `controller`; why not, while another one holds it. A build has none: nothing is refused."""
        row = self.first(
            "SELECT l.testbox, l.holder, l.until, l.until > clock_timestamp() AS live, extract(epoch FROM l.until - clock_timestamp())::float AS rest"
            f" {_OWN_FIRST} FOR UPDATE OF l",
            a=attempt,
        )
        if row is None:
            return None
        if row.holder not in (None, controller) and row.live:
            return refusal(row.testbox, row.holder, attempt, row.until, controller)
        if row.holder != controller or row.rest < seconds - RENEW_SECONDS:
            self.do(
                "UPDATE lease SET holder = :holder, until = clock_timestamp() + make_interval(secs => :seconds) WHERE attempt = :a",
                holder=controller,
                seconds=seconds,
                a=attempt,
            )
        return None

    def tell_phase(self, attempt: int, phase: str, why: str) -> bool:
        """What the worker says that its testbox does; False if the attempt has it no more. The nodes of a cluster do the same, but who is lost is named."""
        testboxes = [
            row.testbox
            for row in self.all(f"SELECT l.testbox {_OWN_FIRST} FOR UPDATE OF l", a=attempt)
        ]
        for number, testbox in enumerate(testboxes):
            if number == 0 or phase != "lost" or f" {testbox}:" in why:
                self.move_box(testbox, Told(phase, why, attempt))
        return bool(testboxes)

    def lapsed_leases(self) -> list[Lapse]:
        rows = self.all(
            "SELECT l.testbox, l.attempt, a.order_id AS order, l.holder, extract(epoch FROM clock_timestamp() - l.until)::float AS silent_seconds"
            " FROM lease l JOIN attempt a ON a.id = l.attempt JOIN orders o ON o.id = a.order_id AND o.testbox = l.testbox"
            " WHERE l.until < clock_timestamp() AND a.state = 'running' ORDER BY l.testbox"
        )
        return [Lapse(**row._mapping) for row in rows]

    def give_back_budget(self, testbox: str, attempts: int) -> None:
        """Attempts that a testbox failed are not its orders' fault: each open one may make `attempts` more."""
        self.do(
            "UPDATE orders o SET budget = GREATEST(budget, (SELECT count(*) FROM attempt a WHERE a.order_id = o.id) + :more)"
            " WHERE testbox = :box AND state IN ('waiting', 'ready', 'running')",
            box=testbox,
            more=attempts,
        )

    def move_part(self, comparison: int, testbox: str, spec: str, other: str) -> bool:
        """Let `other` make the comparison's boots instead; False if it makes them already. Orders that nobody else wants are cancelled."""
        moved = self.do(
            "UPDATE comparison_part p SET testbox = :other WHERE (comparison, testbox, spec) = (:c, :box, :spec)"
            " AND NOT EXISTS (SELECT FROM comparison_part q WHERE (q.comparison, q.testbox, q.spec) = (:c, :other, :spec))",
            c=comparison,
            box=testbox,
            spec=spec,
            other=other,
        )
        if moved:
            self.do("DELETE FROM want w USING orders o WHERE o.id = w.order_id AND w.comparison = :c AND (o.testbox, o.spec) = (:box, :spec)",
                    c=comparison, box=testbox, spec=spec)  # fmt: skip
            self.do(
                "UPDATE comparison SET status = 'waiting' WHERE id = :c AND status = 'running'",
                c=comparison,
            )
        return moved == 1

    # Screening: how many boots of an anchor a testbox made since it was new, or since its hardware changed.
    def screening(self, testbox: str) -> Screening:
        row = self.first(
            "SELECT n.hardware, n.screened_at IS NOT NULL AS screened, (SELECT count(*) FROM boot b JOIN comparison_part p ON p.testbox = b.testbox"
            " JOIN comparison c ON c.id = p.comparison AND c.kind = 'anchor' AND b.series = 'c' || c.id"
            " WHERE b.testbox = n.testbox AND b.outcome = 'up' AND b.booted_at >= n.screening_since) AS boots,"
            " (SELECT count(*) FROM comparison c JOIN comparison_part p ON p.comparison = c.id WHERE c.kind = 'anchor' AND p.testbox = n.testbox"
            " AND c.status IN ('done', 'failed') AND c.created_at >= n.screening_since) AS tried FROM testbox_now n WHERE n.testbox = :box",
            box=testbox,
        )
        return Screening() if row is None else Screening(**row._mapping)

    def ask_screening(self, testbox: str, boots: int) -> None:
        """How many boots of an anchor it has to make; for pages."""
        self.do(
            "UPDATE testbox_now SET screening_boots = :boots WHERE testbox = :box AND screening_boots <> :boots",
            box=testbox,
            boots=boots,
        )

    def set_screened(self, testbox: str) -> None:
        self.do(
            "UPDATE testbox_now SET screened_at = clock_timestamp() WHERE testbox = :box AND screened_at IS NULL",
            box=testbox,
        )

    def set_hardware(self, testbox: str, hardware: Mapping[str, Any], *, changed: bool) -> None:
        """Note what the machine is; `changed`: it has to be screened anew."""
        self.do(
            "UPDATE testbox_now SET hardware = CAST(:hardware AS jsonb), screened_at = CASE WHEN :changed THEN NULL ELSE screened_at END,"
            " screening_since = CASE WHEN :changed THEN clock_timestamp() ELSE screening_since END WHERE testbox = :box",
            box=testbox,
            hardware=json.dumps(hardware),
            changed=changed,
        )

    def screen_again(self, testbox: str) -> None:
        """A person let it work again: what it showed so far counts no more, unless it has been screened."""
        self.do(
            "UPDATE testbox_now SET screening_since = clock_timestamp() WHERE testbox = :box AND screened_at IS NULL",
            box=testbox,
        )

    def asked_kernel(self, testbox: str) -> tuple[int, int, str] | None:
        """(tree, variant, spec) of the base of the oldest open request for this testbox: what a new one can be screened with."""
        row = self.first(
            "SELECT c.tree, c.base, p.spec FROM comparison c JOIN comparison_part p ON p.comparison = c.id"
            " WHERE c.kind <> 'anchor' AND c.status IN ('waiting', 'running') AND p.testbox = :box ORDER BY c.id LIMIT 1",
            box=testbox,
        ) or self.first(
            "SELECT b.tree, p.variant AS base, b.spec FROM bisection b JOIN bisection_point p ON p.bisection = b.id AND p.idx = 0"
            " WHERE b.status = 'running' AND (b.testbox = :box OR b.policy -> 'testboxes' ? :box) ORDER BY b.id LIMIT 1",
            box=testbox,
        )
        return None if row is None else (row.tree, row.base, row.spec)

    def latest_boot_facts(self, testbox: str) -> dict[str, Any]:
        found = self.value(
            "SELECT facts FROM boot WHERE testbox = :box AND outcome = 'up' ORDER BY id DESC LIMIT 1",
            box=testbox,
        )
        return dict(found or {})

    # Alerts: what the operator is told.
    def open_alerts(self) -> set[Subject]:
        return {
            Subject(row.kind, row.testbox)
            for row in self.all("SELECT kind, testbox FROM alert WHERE ended_at IS NULL")
        }

    def begin_alert(self, subject: Subject, reason: str) -> tuple[int, Alert]:
        row = self.first(
            f"INSERT INTO alert (kind, testbox, reason) VALUES (:kind, :box, :reason) RETURNING {_ALERT}",
            kind=subject.kind,
            box=subject.testbox,
            reason=reason,
        )
        assert row is not None
        return row.id, _alert(row)

    def end_alert(self, subject: Subject) -> tuple[int, Alert]:
        row = self.first(
            f"UPDATE alert SET ended_at = clock_timestamp() WHERE kind = :kind AND testbox IS NOT DISTINCT FROM :box AND ended_at IS NULL RETURNING {_ALERT}",
            kind=subject.kind,
            box=subject.testbox,
        )
        assert row is not None
        return row.id, _alert(row)

    def invalid_runs(self) -> list[InvalidRuns]:
        """Of the last boots of each testbox."""
        rows = self.all(
            "SELECT x.name AS testbox, count(*) AS runs, count(*) FILTER (WHERE r.status = 'invalid') AS invalid,"
            " COALESCE((array_agg(r.reason ORDER BY r.id DESC) FILTER (WHERE r.status = 'invalid'))[1], '') AS reason"
            " FROM testbox x CROSS JOIN LATERAL (SELECT id FROM boot WHERE testbox = x.name ORDER BY id DESC LIMIT :boots) b"
            " JOIN run r ON r.boot = b.id AND r.status <> 'warmup' WHERE x.state <> 'gone' GROUP BY x.name",
            boots=LATEST_BOOTS,
        )
        return [InvalidRuns(**row._mapping) for row in rows]

    def queue_stillness(self) -> Queue:
        """Orders that may begin or have begun, and seconds since the later of: the oldest of them came, the last attempt ended."""
        row = self.first(
            "SELECT count(*) AS orders, min(o.id) AS oldest, COALESCE(extract(epoch FROM clock_timestamp() - GREATEST(min(o.created_at),"
            " (SELECT max(ended_at) FROM (SELECT ended_at FROM attempt ORDER BY id DESC LIMIT 500) a))), 0)::float AS still_seconds"
            " FROM orders o LEFT JOIN testbox x ON x.name = o.testbox WHERE o.state IN ('ready', 'running') AND COALESCE(x.state, 'active') = 'active'"
        )
        assert row is not None
        return Queue(**row._mapping)


def _alert(row: sa.Row[Any]) -> Alert:
    return Alert(
        kind=row.kind,
        testbox=row.testbox,
        reason=row.reason,
        began=row.began_at,
        ended=row.ended_at,
    )


def _box(row: sa.Row[Any]) -> Box:
    return Box(**{**row._mapping, "state": BoxState(row.state)})
