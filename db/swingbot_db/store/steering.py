"""The journal of a bisection, step by step, and the input from people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from swingbot.core.bisect.tell import journal
from swingbot.core.bisect.tell.journal import JournalStep
from swingbot.core.model.records import (
    Steer,
)
from swingbot.core.model.statuses import SteerAct
from swingbot_db.store.rows import Rows, iso_time

_STEP: Final = "number, engine, facts, digest, action, at FROM bisection_step"


class Steering(Rows):
    def steps(self, bisection: int) -> list[JournalStep]:
        rows = self.select(f"SELECT {_STEP} WHERE bisection = :b ORDER BY number", b=bisection)
        return [JournalStep(**{**row._mapping, "at": iso_time(row.at)}) for row in rows]

    def last_step(self, bisection: int) -> JournalStep | None:
        row = self.select_one(
            f"SELECT {_STEP} WHERE bisection = :b ORDER BY number DESC LIMIT 1", b=bisection
        )
        return JournalStep(**{**row._mapping, "at": iso_time(row.at)}) if row else None

    def add_step(
        self,
        bisection: int,
        number: int,
        engine: str,
        facts: Mapping[str, Any],
        digest: str,
        action: Mapping[str, Any],
    ) -> None:
        self.execute(
            "INSERT INTO bisection_step (bisection, number, engine, facts, digest, action)"
            " VALUES (:b, :n, :engine, CAST(:facts AS json), :digest, CAST(:action AS json))",
            b=bisection,
            n=number,
            engine=engine,
            facts=journal.text(facts),
            digest=digest,
            action=journal.text(action),
        )

    def all(self, bisection: int) -> list[Steer]:
        rows = self.select(
            "SELECT act, points, factor, boots, why, who, at FROM bisection_steer WHERE bisection"
            " = :b ORDER BY id",
            b=bisection,
        )
        return [
            Steer(**{**row._mapping, "points": tuple(row.points), "at": iso_time(row.at)})
            for row in rows
        ]

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
        self.execute(
            "INSERT INTO bisection_steer (bisection, act, points, factor, boots, why, who) VALUES"
            " (:b, :act, :points, :factor, :boots, :why, :who)",
            b=bisection,
            act=act,
            points=list(points),
            factor=factor,
            boots=boots,
            why=why,
            who=who,
        )

    def set_skipped(self, bisection: int, points: Sequence[int], why: str | None) -> None:
        self.execute(
            "UPDATE bisection_point SET skipped = :why WHERE bisection = :b AND idx = ANY(:points)",
            b=bisection,
            points=list(points),
            why=why,
        )

    def set_hint(self, bisection: int, points: Sequence[int], factor: float) -> None:
        self.execute(
            "UPDATE bisection_point SET hint = :factor WHERE bisection = :b AND idx = ANY(:points)",
            b=bisection,
            points=list(points),
            factor=factor,
        )

    def reopen(self, bisection: int, *, max_boots: int, max_end_boots: int) -> None:
        self.execute(
            "UPDATE bisection SET status = 'running', ended_at = NULL, conclusion = NULL, reason ="
            " NULL, terms = terms || CAST(:terms AS jsonb)"
            " WHERE id = :b",
            b=bisection,
            terms=journal.text({"max_boots": max_boots, "max_end_boots": max_end_boots}),
        )
