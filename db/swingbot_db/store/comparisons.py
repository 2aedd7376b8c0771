"""Comparisons, their rows, and the swings among them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from swingbot.core.model.records import Comparison, Swing
from swingbot_db.store.rows import Rows


class ComparisonRows(Rows):
    def add_comparison(
        self,
        *,
        kind: str,
        tree: int,
        base: int,
        head: int,
        boots: int,
        parts: Iterable[tuple[str, str]],
        change: int | None = None,
        first_k: int = 0,
        request_key: str | None = None,
    ) -> int:
        """Record the intent to compare; the same request key or change gives the same comparison again."""
        number = self.value(
            "INSERT INTO comparison (kind, tree, change, base, head, first_k, boots, request_key)"
            " VALUES (:kind, :tree, :change, :base, :head, :first_k, :boots, :key) ON CONFLICT DO NOTHING RETURNING id",
            kind=kind,
            tree=tree,
            change=change,
            base=base,
            head=head,
            first_k=first_k,
            boots=boots,
            key=request_key,
        )
        if number is None:
            found = self.value(
                "SELECT id FROM comparison WHERE request_key = :key OR change = :change",
                key=request_key,
                change=change,
            )
            assert isinstance(found, int)
            return found
        for testbox, spec in parts:
            self.do(
                "INSERT INTO comparison_part (comparison, testbox, spec) VALUES (:id, :box, :spec) ON CONFLICT DO NOTHING",
                id=number,
                box=testbox,
                spec=spec,
            )
        assert isinstance(number, int)
        return number

    def comparison(self, number: int) -> Comparison | None:
        found = self._comparisons("c.id = :id", id=number)
        return found[0] if found else None

    def open_comparisons(self) -> list[Comparison]:
        return self._comparisons("c.status IN ('waiting', 'running')")

    def comparison_of_request(self, request_key: str) -> Comparison | None:
        found = self._comparisons("c.request_key = :key", key=request_key)
        return found[0] if found else None

    def _comparisons(self, where: str, **values: Any) -> list[Comparison]:
        rows = self.all(
            "SELECT c.id, kind, tree, base, head, first_k, boots, status, COALESCE((SELECT"
            " jsonb_agg(jsonb_build_array(testbox, spec) ORDER BY testbox, spec) FROM comparison_part p WHERE p.comparison = c.id), '[]') AS parts"
            f" FROM comparison c WHERE {where} ORDER BY c.id",
            **values,
        )
        return [
            Comparison(**{**row._mapping, "parts": tuple((box, spec) for box, spec in row.parts)})
            for row in rows
        ]

    def set_comparison(self, number: int, status: str, reason: str | None = None) -> None:
        self.do(
            "UPDATE comparison SET status = :status, reason = :reason,"
            " ended_at = CASE WHEN :over THEN clock_timestamp() END WHERE id = :id AND status NOT IN ('done', 'failed', 'cancelled')"
            " AND (status, reason) IS DISTINCT FROM (:status, :reason)",
            id=number,
            status=status,
            reason=reason,
            over=status in ("done", "failed", "cancelled"),
        )

    def add_row(self, comparison: int, testbox: str, spec: str, detail: Mapping[str, Any]) -> None:
        self.do(
            "INSERT INTO comparison_row (comparison, testbox, spec, unit_job, metric, verdict, change_pct, detail)"
            " VALUES (:id, :box, :spec, :job, :metric, :verdict, :pct, CAST(:detail AS jsonb)) ON CONFLICT DO NOTHING",
            id=comparison,
            box=testbox,
            spec=spec,
            job=detail["unit_job"],
            metric=detail["metric"],
            verdict=detail["verdict"],
            pct=detail["change_pct"],
            detail=json.dumps(detail),
        )

    def rows(self, comparison: int) -> list[dict[str, Any]]:
        """The rows of a comparison as DESIGN section 8 words them, each with its `spec` added."""
        rows = self.all(
            "SELECT spec, detail FROM comparison_row WHERE comparison = :id ORDER BY testbox, unit_job, metric",
            id=comparison,
        )
        return [{**row.detail, "spec": row.spec} for row in rows]

    def add_swing(
        self,
        comparison: int,
        testbox: str,
        unit_job: str,
        metric: str,
        direction: str,
        change_pct: float,
        state: str,
        *,
        source: str = "base",
        reason: str | None = None,
    ) -> None:
        self.do(
            "INSERT INTO swing (comparison, testbox, unit_job, metric, direction, change_pct, state, source, evidence)"
            " VALUES (:c, :box, :job, :metric, :direction, :pct, :state, :source, CAST(:evidence AS jsonb)) ON CONFLICT DO NOTHING",
            c=comparison,
            box=testbox,
            job=unit_job,
            metric=metric,
            direction=direction,
            pct=change_pct,
            state=state,
            source=source,
            evidence=json.dumps({"alarm": reason} if reason else {}),
        )

    def swings(self, *states: str) -> list[Swing]:
        rows = self.all(
            "SELECT id, comparison, testbox, unit_job, metric, direction, change_pct, state, bisection, source, anchor, proof FROM swing"
            " WHERE state = ANY(:states) ORDER BY id",
            states=list(states),
        )
        return [Swing(**row._mapping) for row in rows]

    def set_swing(self, number: int, state: str, bisection: int | None = None) -> None:
        self.do(
            "UPDATE swing SET state = :state, bisection = COALESCE(:b, bisection) WHERE id = :id",
            id=number,
            state=state,
            b=bisection,
        )
