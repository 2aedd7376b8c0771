"""Journals of bisections and their skips and hints, in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from swingbot.core.bisect.tell import journal
from swingbot.core.bisect.tell.journal import JournalStep
from swingbot.core.model.records import Steer
from swingbot.core.model.statuses import SteerAct
from tests.fakes.store.tables import Noun, Refused, StepRow, iso_time


class Steering(Noun):
    def steps(self, bisection: int) -> list[JournalStep]:
        return [
            JournalStep(
                number=number,
                engine=row.engine,
                facts=json.loads(row.facts),
                digest=row.digest,
                action=json.loads(row.action),
                at=iso_time(row.at),
            )
            for (of, number), row in sorted(self.db.steps.items(), key=lambda item: item[0])
            if of == bisection
        ]

    def last_step(self, bisection: int) -> JournalStep | None:
        steps = self.steps(bisection)
        return steps[-1] if steps else None

    def add_step(
        self,
        bisection: int,
        number: int,
        engine: str,
        facts: Mapping[str, Any],
        digest: str,
        action: Mapping[str, Any],
    ) -> None:
        if (bisection, number) in self.db.steps:
            raise Refused(f"bisection {bisection} has step {number}")
        self.db.steps[bisection, number] = StepRow(
            engine=engine,
            facts=journal.text(facts),
            digest=digest,
            action=journal.text(action),
            at=self.db.now(),
        )

    def all(self, bisection: int) -> list[Steer]:
        return [steer for of, steer in self.db.steers.values() if of == bisection]

    def add(
        self,
        bisection: int,
        act: SteerAct,
        points: Sequence[int],
        *,
        who: str,
        why: str | None,
        factor: float | None = None,
        boots: int | None = None,
    ) -> None:
        self.db.steers[self.db.next_id("steer")] = (
            bisection,
            Steer(
                act=act,
                points=tuple(points),
                factor=factor,
                boots=boots,
                why=why,
                who=who,
                at=iso_time(self.db.now()),
            ),
        )

    def _put(self, bisection: int, points: Sequence[int], **values: Any) -> None:
        for idx in points:
            if (bisection, idx) in self.db.points:
                self.db.points[bisection, idx] = replace(self.db.points[bisection, idx], **values)

    def set_skipped(self, bisection: int, points: Sequence[int], why: str | None) -> None:
        self._put(bisection, points, skipped=why)

    def set_hint(self, bisection: int, points: Sequence[int], factor: float) -> None:
        self._put(bisection, points, hint=factor)

    def reopen(self, bisection: int, *, max_boots: int, max_end_boots: int) -> None:
        row = self.db.bisections[bisection]
        terms = replace(row.bisection.terms, max_boots=max_boots, max_end_boots=max_end_boots)
        again = replace(row.bisection, status="running", terms=terms)
        self.db.bisections[bisection] = replace(
            row, bisection=again, ended_at=None, conclusion=None, reason=None
        )
