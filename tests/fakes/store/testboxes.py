"""Testboxes in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import Event, TestboxPhase, TestboxStatus, transition
from swingbot.core.plan.testbox_rules import Screening
from swingbot_jobs.testbox.definition import Testbox, remembered
from tests.fakes.store.tables import BootRow, EventRow, Noun, TestboxRow, TestboxStatusRow


class Testboxes(Noun):
    def sync(self, testboxes: Iterable[tuple[Testbox, Mapping[str, Any]]]) -> None:
        names = set()
        for testbox, facts in testboxes:
            names.add(testbox.name)
            known = self.db.testboxes.get(testbox.name)
            row = known or TestboxRow(testbox=testbox, facts=facts)
            state = "active" if row.state == "gone" else row.state
            self.db.testboxes[testbox.name] = replace(
                row, testbox=testbox, facts=facts, state=state
            )
        for name in self.db.testboxes.keys() - names:
            self.db.testboxes[name] = replace(self.db.testboxes[name], state="gone")

    def remembered(self, present: Collection[str]) -> dict[str, Testbox]:
        found = {}
        for name, row in sorted(self.db.testboxes.items()):
            with contextlib.suppress(KeyError):
                if name not in present:
                    found[name] = remembered(row.facts)
        return found

    def states(self) -> dict[str, TestboxState]:
        return {name: row.state for name, row in self.db.testboxes.items()}

    def set_state(self, name: str, state: TestboxState, reason: str | None) -> bool:
        row = self.db.testboxes.get(name)
        if row is None or row.state == "gone" or (row.state, row.reason) == (state, reason):
            return False
        self.db.testboxes[name] = replace(row, state=state, reason=reason)
        return True

    def idle_seconds(self, testboxes: Collection[str], *, queue: bool = True) -> dict[str, float]:
        seconds = {name: self._idle_seconds(name, queue=queue) for name in testboxes}
        return {name: idle for name, idle in seconds.items() if idle is not None}

    def _idle_seconds(self, testbox: str, *, queue: bool) -> float | None:
        busy = ("waiting", "ready", "running") if queue else ("running",)
        rows = [row for row in self.db.orders.values() if row.order.testbox == testbox]
        if any(row.order.state in busy for row in rows):
            return 0.0
        ends = [row.ended_at for row in rows if row.ended_at is not None]
        return (self.db.now() - max(ends)).total_seconds() if ends else None

    def reasons(self) -> dict[str, tuple[TestboxState, str | None]]:
        return {name: (row.state, row.reason) for name, row in sorted(self.db.testboxes.items())}

    def all(self) -> list[TestboxStatus]:
        return [row.status for _, row in sorted(self.db.testbox_statuses.items())]

    def lock(self, testbox: str) -> TestboxStatus:
        row = TestboxStatusRow(status=TestboxStatus(testbox=testbox), screening_since=self.db.now())
        return self.db.testbox_statuses.setdefault(testbox, row).status

    def move(self, testbox: str, event: Event) -> TestboxStatus:
        was = self.lock(testbox)
        row = self.db.testboxes.get(testbox)
        now = transition(was, event, barred=row is not None and row.state == "quarantined")
        self.db.testbox_statuses[testbox] = replace(self.db.testbox_statuses[testbox], status=now)
        if (now.state, now.why, now.attempt) != (was.state, was.why, was.attempt):
            self.add_event(testbox, was.state, now.state, now.why, now.attempt or was.attempt)
        return now

    def add_event(
        self, testbox: str, was: TestboxPhase, state: TestboxPhase, why: str, attempt: int | None
    ) -> None:
        self.db.events[self.db.next_id("event")] = EventRow(
            testbox=testbox, was=was, state=state, why=why, attempt=attempt
        )

    def screenings(self, testboxes: Collection[str]) -> dict[str, Screening]:
        return {name: self._screening(name) for name in testboxes}

    def _screening(self, testbox: str) -> Screening:
        row = self.db.testbox_statuses.get(testbox)
        if row is None:
            return Screening()
        if row.screened:
            return Screening(hardware=row.hardware, screened=True)
        anchors = {
            number: comparison
            for number, comparison in self.db.comparisons.items()
            if comparison.comparison.kind == "anchor"
            and any(name == testbox for name, _ in comparison.comparison.parts)
        }
        series = {f"c{number}" for number in anchors}

        def counts(boot: BootRow) -> bool:
            return (
                boot.order.testbox == testbox
                and boot.outcome == "up"
                and boot.booted_at >= row.screening_since
                and boot.order.series in series
            )

        return Screening(
            hardware=row.hardware,
            screened=row.screened,
            boots=sum(map(counts, self.db.boots.values())),
            tried=sum(
                anchor.comparison.status in ("done", "failed")
                and anchor.created_at >= row.screening_since
                for anchor in anchors.values()
            ),
        )

    def _put(self, testbox: str, **values: Any) -> None:
        if testbox in self.db.testbox_statuses:
            self.db.testbox_statuses[testbox] = replace(self.db.testbox_statuses[testbox], **values)

    def ask_screening(self, boots: Mapping[str, int]) -> None:
        for testbox, needed in boots.items():
            self._put(testbox, screening_boots=needed)

    def set_screened(self, testbox: str) -> None:
        self._put(testbox, screened=True)

    def set_hardware(self, testbox: str, hardware: Mapping[str, Any], *, changed: bool) -> None:
        self._put(testbox, hardware=dict(hardware))
        if changed:
            self._put(testbox, screened=False, screening_since=self.db.now())

    def screen_again(self, testbox: str) -> None:
        row = self.db.testbox_statuses.get(testbox)
        if row is not None and not row.screened:
            self._put(testbox, screening_since=self.db.now())
