"""Testboxes: operational state and current phase."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import Event, TestboxPhase, TestboxStatus, transition
from swingbot.core.plan.testbox_rules import Screening
from swingbot_db.store.rows import Rows
from swingbot_jobs.testbox.definition import Testbox, remembered

KEPT_EVENTS: Final = 5000  # per testbox; a busy one adds four per boot
TRIMMED_EVERY: Final = 500  # events of all testboxes
_TESTBOX = "n.testbox, n.state, n.why, n.attempt, n.failures, n.down"


class Testboxes(Rows):
    def sync(self, testboxes: Iterable[tuple[Testbox, Mapping[str, Any]]]) -> None:
        names = []
        for testbox, facts in testboxes:
            names.append(testbox.name)
            self.execute(
                "INSERT INTO testbox (name, tbox_group, facts) VALUES (:name, :grp, CAST(:facts AS"
                " jsonb)) ON CONFLICT (name) DO UPDATE SET"
                " tbox_group = excluded.tbox_group, facts = excluded.facts, updated_at ="
                " clock_timestamp(),"
                " state = CASE testbox.state WHEN 'gone' THEN 'active' ELSE testbox.state END"
                " WHERE (testbox.tbox_group, testbox.facts) IS DISTINCT FROM (excluded.tbox_group,"
                " excluded.facts) OR testbox.state = 'gone'",
                name=testbox.name,
                grp=testbox.tbox_group,
                facts=json.dumps(facts),
            )
        self.execute(
            "UPDATE testbox SET state = 'gone', updated_at = clock_timestamp() WHERE NOT name ="
            " ANY(:names) AND state <> 'gone'",
            names=names,
        )

    def remembered(self, present: Collection[str]) -> dict[str, Testbox]:
        """Testboxes by name, except `present` ones, as described by their last file.

        Testboxes with unreadable facts are left out.
        """
        known = {}
        for row in self.select(
            "SELECT name, facts FROM testbox WHERE NOT name = ANY(:names) ORDER BY name",
            names=list(present),
        ):
            with contextlib.suppress(KeyError):  # stored before one of these facts existed
                known[row.name] = remembered(row.facts)
        return known

    def states(self) -> dict[str, TestboxState]:
        return {row.name: row.state for row in self.select("SELECT name, state FROM testbox")}

    def set_state(self, name: str, state: TestboxState, reason: str | None) -> bool:
        return (
            self.execute(
                "UPDATE testbox SET state = :state, reason = :reason, updated_at ="
                " clock_timestamp()"
                " WHERE name = :name AND state <> 'gone' AND (state, reason) IS DISTINCT FROM"
                " (:state, :reason)",
                name=name,
                state=state,
                reason=reason,
            )
            == 1
        )

    def idle_seconds(self, testboxes: Collection[str], *, queue: bool = True) -> dict[str, float]:
        busy = "'waiting', 'ready', 'running'" if queue else "'running'"
        rows = self.select(
            "SELECT n.testbox, CASE WHEN open.testbox IS NOT NULL THEN 0 ELSE extract(epoch FROM"
            " clock_timestamp() - (SELECT max(ended_at) FROM orders WHERE testbox = n.testbox))"
            " END::float AS seconds FROM unnest(CAST(:testboxes AS text[])) AS n (testbox)"
            f" LEFT JOIN (SELECT DISTINCT testbox FROM orders WHERE state IN ({busy})) open"
            " USING (testbox)",
            testboxes=list(testboxes),
        )
        return {row.testbox: row.seconds for row in rows if row.seconds is not None}

    def reasons(self) -> dict[str, tuple[TestboxState, str | None]]:
        return {
            row.name: (row.state, row.reason)
            for row in self.select("SELECT name, state, reason FROM testbox ORDER BY name")
        }

    def all(self) -> list[TestboxStatus]:
        return [
            _testbox(row)
            for row in self.select(f"SELECT {_TESTBOX} FROM testbox_now n ORDER BY n.testbox")
        ]

    def lock(self, testbox: str) -> TestboxStatus:
        self.execute(
            "INSERT INTO testbox_now (testbox) VALUES (:testbox) ON CONFLICT DO NOTHING",
            testbox=testbox,
        )
        row = self.select_one(
            f"SELECT {_TESTBOX} FROM testbox_now n WHERE n.testbox = :testbox FOR UPDATE",
            testbox=testbox,
        )
        assert row is not None
        return _testbox(row)

    def move(self, testbox: str, event: Event) -> TestboxStatus:
        was = self.lock(testbox)
        barred = self.scalar(
            "SELECT state = 'quarantined' FROM testbox WHERE name = :testbox", testbox=testbox
        )
        now = transition(was, event, barred=bool(barred))
        if now != was:
            self._put(was, now)
        return now

    def _put(self, was: TestboxStatus, now: TestboxStatus) -> None:
        self.execute(
            "UPDATE testbox_now SET state = :state, why = :why, attempt = :attempt, failures ="
            " :failures, down = :down,"
            " since = CASE WHEN state = :state AND attempt IS NOT DISTINCT FROM :attempt THEN"
            " since ELSE clock_timestamp() END WHERE testbox = :testbox",
            testbox=now.testbox,
            state=now.state.value,
            why=now.why,
            attempt=now.attempt,
            failures=now.failures,
            down=now.down,
        )
        if (now.state, now.why, now.attempt) != (was.state, was.why, was.attempt):
            self.add_event(now.testbox, was.state, now.state, now.why, now.attempt or was.attempt)

    def add_event(
        self, testbox: str, was: TestboxPhase, state: TestboxPhase, why: str, attempt: int | None
    ) -> None:
        number = self.scalar(
            "INSERT INTO testbox_event (testbox, was, state, why, attempt) VALUES (:testbox, :was,"
            " :state, :why, :attempt) RETURNING id",
            testbox=testbox,
            was=was.value,
            state=state.value,
            why=why,
            attempt=attempt,
        )
        if number % TRIMMED_EVERY == 0:  # of all testboxes: this one may never have such a number
            self.execute(
                "DELETE FROM testbox_event e USING testbox t CROSS JOIN LATERAL (SELECT id FROM"
                " testbox_event WHERE testbox = t.name ORDER BY id DESC OFFSET :kept LIMIT 1) o"
                " WHERE e.testbox = t.name AND e.id <= o.id",
                kept=KEPT_EVENTS,
            )

    # Screening: anchor boots of a testbox since it was added or its hardware changed.
    def screenings(self, testboxes: Collection[str]) -> dict[str, Screening]:
        rows = self.select(
            "SELECT n.testbox, n.hardware, n.screened_at IS NOT NULL AS screened,"
            " CASE WHEN n.screened_at IS NULL THEN (SELECT count(*) FROM boot"
            " b JOIN comparison_part p ON p.testbox = b.testbox"
            " JOIN comparison c ON c.id = p.comparison AND c.kind = 'anchor' AND b.series = 'c' ||"
            " c.id"
            " WHERE b.testbox = n.testbox AND b.outcome = 'up' AND b.booted_at >="
            " n.screening_since) ELSE 0 END AS boots,"
            " CASE WHEN n.screened_at IS NULL THEN"
            " (SELECT count(*) FROM comparison c JOIN comparison_part p ON p.comparison = c.id"
            " WHERE c.kind = 'anchor' AND p.testbox = n.testbox"
            " AND c.status IN ('done', 'failed') AND c.created_at >= n.screening_since)"
            " ELSE 0 END AS tried"
            " FROM testbox_now n WHERE n.testbox = ANY(:testboxes)",
            testboxes=list(testboxes),
        )
        known = {
            row.testbox: Screening(
                hardware=row.hardware, screened=row.screened, boots=row.boots, tried=row.tried
            )
            for row in rows
        }
        return {testbox: known.get(testbox, Screening()) for testbox in testboxes}

    def ask_screening(self, boots: Mapping[str, int]) -> None:
        self.execute(
            "UPDATE testbox_now n SET screening_boots = w.boots"
            " FROM unnest(CAST(:testboxes AS text[]), CAST(:boots AS int[])) AS w (testbox, boots)"
            " WHERE n.testbox = w.testbox AND n.screening_boots <> w.boots",
            testboxes=list(boots),
            boots=list(boots.values()),
        )

    def set_screened(self, testbox: str) -> None:
        self.execute(
            "UPDATE testbox_now SET screened_at = clock_timestamp() WHERE testbox = :testbox AND"
            " screened_at IS NULL",
            testbox=testbox,
        )

    def set_hardware(self, testbox: str, hardware: Mapping[str, Any], *, changed: bool) -> None:
        self.execute(
            "UPDATE testbox_now SET hardware = CAST(:hardware AS jsonb), screened_at = CASE WHEN"
            " :changed THEN NULL ELSE screened_at END,"
            " screening_since = CASE WHEN :changed THEN clock_timestamp() ELSE screening_since END"
            " WHERE testbox = :testbox",
            testbox=testbox,
            hardware=json.dumps(hardware),
            changed=changed,
        )

    def screen_again(self, testbox: str) -> None:
        self.execute(
            "UPDATE testbox_now SET screening_since = clock_timestamp() WHERE testbox = :testbox"
            " AND screened_at IS NULL",
            testbox=testbox,
        )


def _testbox(row: sa.Row[Any]) -> TestboxStatus:
    return TestboxStatus(**{**row._mapping, "state": TestboxPhase(row.state)})
