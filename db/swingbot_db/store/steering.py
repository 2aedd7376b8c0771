"""The journal of a bisection's steps, what people told it, and bisections of the branches it blamed a merge of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from swingbot.core.bisect import journal
from swingbot.core.model.records import Bisection, Steer
from swingbot_db.store.bisections import BISECTION
from swingbot_db.store.rows import Rows


class SteeringRows(Rows):
    def steps(self, bisection: int) -> list[journal.Step]:
        rows = self.all(
            "SELECT number, engine, facts, digest, action, at FROM bisection_step WHERE bisection = :b ORDER BY number",
            b=bisection,
        )
        return [journal.Step(**{**row._mapping, "at": _iso(row.at)}) for row in rows]

    def last_step(self, bisection: int) -> tuple[int, str, dict[str, Any]] | None:
        """(number, digest, action) of the latest step that was noted."""
        row = self.first(
            "SELECT number, digest, action FROM bisection_step WHERE bisection = :b ORDER BY number DESC LIMIT 1",
            b=bisection,
        )
        return (row.number, row.digest, row.action) if row else None

    def add_step(
        self,
        bisection: int,
        number: int,
        engine: str,
        facts: Mapping[str, Any],
        digest: str,
        action: Mapping[str, Any],
    ) -> None:
        self.do(
            "INSERT INTO bisection_step (bisection, number, engine, facts, digest, action)"
            " VALUES (:b, :n, :engine, CAST(:facts AS json), :digest, CAST(:action AS json))",
            b=bisection,
            n=number,
            engine=engine,
            facts=journal.text(facts),
            digest=digest,
            action=journal.text(action),
        )

    def steers(self, bisection: int) -> list[Steer]:
        """What people told it, in order."""
        rows = self.all(
            "SELECT act, points, factor, boots, why, who, at FROM bisection_steer WHERE bisection = :b ORDER BY id",
            b=bisection,
        )
        return [
            Steer(**{**row._mapping, "points": tuple(row.points), "at": _iso(row.at)})
            for row in rows
        ]

    def add_steer(
        self,
        bisection: int,
        act: str,
        points: Sequence[int],
        *,
        who: str,
        why: str | None,
        factor: float | None = None,
        boots: int | None = None,
    ) -> None:
        self.do(
            "INSERT INTO bisection_steer (bisection, act, points, factor, boots, why, who) VALUES (:b, :act, :points, :factor, :boots, :why, :who)",
            b=bisection,
            act=act,
            points=list(points),
            factor=factor,
            boots=boots,
            why=why,
            who=who,
        )

    def set_skipped(self, bisection: int, points: Sequence[int], why: str | None) -> None:
        self.do(
            "UPDATE bisection_point SET skipped = :why WHERE bisection = :b AND idx = ANY(:points)",
            b=bisection,
            points=list(points),
            why=why,
        )

    def set_hint(self, bisection: int, points: Sequence[int], factor: float) -> None:
        self.do(
            "UPDATE bisection_point SET hint = :factor WHERE bisection = :b AND idx = ANY(:points)",
            b=bisection,
            points=list(points),
            factor=factor,
        )

    def reopen(self, bisection: int, policy: Mapping[str, Any]) -> None:
        """Back to running, with further keys of its policy; what was observed stays."""
        self.do(
            "UPDATE bisection SET status = 'running', ended_at = NULL, conclusion = NULL, reason = NULL, policy = policy || CAST(:policy AS jsonb)"
            " WHERE id = :b",
            b=bisection,
            policy=journal.text(policy),
        )

    def set_parent(self, bisection: int, parent: int, merged: str) -> None:
        """`bisection` searches the branch that `merged`, the culprit of `parent`, brought in."""
        self.do(
            "UPDATE bisection SET parent = :p, merged = :m WHERE id = :b AND parent IS NULL",
            b=bisection,
            p=parent,
            m=merged,
        )

    def parent_of(self, bisection: int) -> tuple[int, str] | None:
        row = self.first(
            "SELECT parent, merged FROM bisection WHERE id = :b AND parent IS NOT NULL", b=bisection
        )
        return (row.parent, row.merged) if row else None

    def life_of(self, bisection: int) -> tuple[str, str | None, str | None]:
        """(when it was asked for, when it ended, the reason it gave)."""
        row = self.first(
            "SELECT created_at, ended_at, reason FROM bisection WHERE id = :b", b=bisection
        )
        assert row is not None
        return (
            _iso(row.created_at),
            None if row.ended_at is None else _iso(row.ended_at),
            row.reason,
        )

    def branches_of(self, bisection: int) -> list[tuple[Bisection, str]]:
        """(bisection of a merged branch, merge) of all that were opened for this one's culprits."""
        rows = self.all(
            f"SELECT {BISECTION}, merged FROM bisection WHERE parent = :b ORDER BY id", b=bisection
        )
        return [
            (Bisection(**{k: v for k, v in row._mapping.items() if k != "merged"}), row.merged)
            for row in rows
        ]


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
