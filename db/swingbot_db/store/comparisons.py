"""Comparisons and their rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import (
    Arm,
    Comparison,
    NewComparison,
)
from swingbot.core.model.statuses import OVER, ComparisonStatus
from swingbot.service.visible import NotLimited
from swingbot_db.scope import can_limit
from swingbot_db.store.rows import Rows

_COMPARISONS: Final = """
SELECT c.id, kind, tree, against, columns, looks, looks_stated, first_k, purpose, boots, status,
  reason, request_key, private_to,
       COALESCE(c.min_effect_pct, (SELECT t.min_effect_pct FROM tree t WHERE t.id = c.tree))
         AS min_effect_pct,
       COALESCE((SELECT jsonb_agg(jsonb_build_array(testbox, spec) ORDER BY testbox, spec)
                 FROM comparison_part p WHERE p.comparison = c.id), '[]') AS parts,
       (SELECT jsonb_agg(jsonb_build_object('name', name, 'variant', variant, 'axes', axes,
           'settings', settings, 'from_block', from_block, 'specs', COALESCE((SELECT
             jsonb_object_agg(s.spec, s.own)
               FROM comparison_arm_spec s WHERE (s.comparison, s.arm) = (a.comparison, a.arm)),
                 '{}'))
           ORDER BY arm) FROM comparison_arm a WHERE a.comparison = c.id) AS arms
FROM comparison c
"""
_ROWS_AT_ONCE: Final = 1000  # a statement of some MB
_ADD_ROWS: Final = """
INSERT INTO comparison_row (comparison, testbox, spec, unit_job, metric, against, arm, reference,
  verdict, change_pct, detail)
SELECT :id, r.testbox, r.spec, r.unit_job, r.metric, r.against, r.arm, r.reference, r.verdict,
  r.change_pct, CAST(r.detail AS jsonb)
FROM unnest(CAST(:testboxes AS text[]), CAST(:specs AS text[]), CAST(:jobs AS text[]),
  CAST(:metrics AS text[]), CAST(:against AS text[]), CAST(:arms AS integer[]),
  CAST(:references AS integer[]), CAST(:verdicts AS text[]),
  CAST(:changes AS double precision[]), CAST(:details AS text[]))
  AS r (testbox, spec, unit_job, metric, against, arm, reference, verdict, change_pct, detail)
ON CONFLICT DO NOTHING
"""


class Comparisons(Rows):
    def add(self, new: NewComparison) -> int:
        if new.private_to is not None and not can_limit(self.conn):
            raise NotLimited
        number = self.scalar(
            "INSERT INTO comparison"
            " (kind, tree, change, against, columns, first_k, purpose, boots, looks_stated,"
            " min_effect_pct, request_key, private_to)"
            " VALUES (:kind, :tree, :change, :against, :columns, :first_k, :purpose, :boots,"
            " :looks, :min_effect, :key, :private_to)"
            " ON CONFLICT DO NOTHING RETURNING id",
            kind=new.kind,
            tree=new.tree,
            change=new.change,
            against=list(new.against),
            columns=list(new.columns),
            first_k=new.first_k,
            purpose=new.purpose,
            boots=new.boots,
            looks=new.looks_stated,
            min_effect=new.min_effect_pct,
            key=new.request_key,
            private_to=None if new.private_to is None else list(new.private_to),
        )
        if number is None:
            existing = self.scalar(
                "SELECT id FROM comparison WHERE request_key = :key", key=new.request_key
            )
            assert isinstance(existing, int)
            return existing
        for testbox, spec in new.parts:
            self.execute(
                "INSERT INTO comparison_part (comparison, testbox, spec) VALUES (:id, :testbox,"
                " :spec) ON CONFLICT DO NOTHING",
                id=number,
                testbox=testbox,
                spec=spec,
            )
        assert isinstance(number, int)
        for place, arm in enumerate(new.arms):
            self._add_arm(number, place, arm)
        return number

    def _add_arm(self, comparison: int, place: int, arm: Arm) -> None:
        self.execute(
            "INSERT INTO comparison_arm (comparison, arm, name, variant, axes, settings,"
            " from_block)"
            " VALUES (:c, :arm, :name, :variant, CAST(:axes AS jsonb), CAST(:settings AS jsonb),"
            " :from_block)",
            c=comparison,
            arm=place,
            name=arm.name,
            variant=arm.variant,
            axes=json.dumps(dict(arm.axes)),
            settings=json.dumps(dict(arm.settings)),
            from_block=arm.from_block,
        )
        for spec, own in arm.specs.items():
            self.execute(
                "INSERT INTO comparison_arm_spec (comparison, arm, spec, own)"
                " VALUES (:c, :arm, :spec, :own)",
                c=comparison,
                arm=place,
                spec=spec,
                own=own,
            )

    def get(self, number: int) -> Comparison | None:
        matches = self._comparisons("c.id = :id", id=number)
        return matches[0] if matches else None

    def lock(self, number: int) -> None:
        self.scalar("SELECT id FROM comparison WHERE id = :id FOR UPDATE", id=number)

    def open(self) -> list[Comparison]:
        return self._comparisons("c.status IN ('waiting', 'running')")

    def of_request(self, request_key: str) -> Comparison | None:
        matches = self._comparisons("c.request_key = :key", key=request_key)
        return matches[0] if matches else None

    def _comparisons(self, where: str, **values: Any) -> list[Comparison]:
        rows = self.select(f"{_COMPARISONS} WHERE {where} ORDER BY c.id", **values)
        return [_comparison(row._mapping) for row in rows]

    def set_status(self, number: int, status: ComparisonStatus, reason: str | None = None) -> None:
        self.execute(
            "UPDATE comparison SET status = :status, reason = :reason,"
            " ended_at = CASE WHEN :over THEN clock_timestamp() END WHERE id = :id AND status NOT"
            " IN ('done', 'failed', 'cancelled')"
            " AND (status, reason) IS DISTINCT FROM (:status, :reason)",
            id=number,
            status=status,
            reason=reason,
            over=status in OVER,
        )

    def replace_rows(
        self, number: int, rows: Sequence[tuple[str, ComparisonRow]], unjudged: int = 0
    ) -> None:
        self.execute("DELETE FROM comparison_row WHERE comparison = :id", id=number)
        self.execute(
            "UPDATE comparison SET unjudged = :unjudged WHERE id = :id AND unjudged <> :unjudged",
            id=number,
            unjudged=unjudged,
        )
        for at in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[at : at + _ROWS_AT_ONCE]
            self.execute(
                _ADD_ROWS,
                id=number,
                specs=[spec for spec, _ in some],
                testboxes=[row.testbox for _, row in some],
                jobs=[row.unit_job for _, row in some],
                metrics=[row.metric for _, row in some],
                against=[row.against for _, row in some],
                arms=[row.arm for _, row in some],
                references=[row.reference for _, row in some],
                verdicts=[row.verdict for _, row in some],
                changes=[row.change_pct for _, row in some],
                details=[json.dumps(row.to_json()) for _, row in some],
            )

    def rows(self, comparison: int) -> list[ComparisonRow]:
        rows = self.select(
            "SELECT spec, against, arm, reference, detail FROM comparison_row WHERE comparison ="
            " :id"
            " ORDER BY testbox, unit_job, metric, against, arm",
            id=comparison,
        )
        return [
            ComparisonRow.from_json(
                {
                    **row.detail,
                    "spec": row.spec,
                    "against": row.against,
                    "arm": row.arm,
                    "reference": row.reference,
                }
            )
            for row in rows
        ]

    def extend(self, number: int, boots: int) -> None:
        self.execute(
            "UPDATE comparison SET boots = :boots, status = 'waiting' WHERE id = :id AND status ="
            " 'running' AND boots < :boots",
            id=number,
            boots=boots,
        )

    def renew(self, number: int, first_k: int) -> None:
        self.execute(
            "UPDATE comparison SET first_k = :k, status = 'waiting' WHERE id = :id AND status ="
            " 'running' AND first_k < :k",
            id=number,
            k=first_k,
        )

    def reopen(self, number: int, boots: int, arms: Sequence[Arm] = ()) -> None:
        place = self.scalar("SELECT count(*) FROM comparison_arm WHERE comparison = :id", id=number)
        assert isinstance(place, int)
        for behind, arm in enumerate(arms):
            self._add_arm(number, place + behind, arm)
        judged = self.scalar("SELECT status = 'done' FROM comparison WHERE id = :id", id=number)
        self.execute(
            "UPDATE comparison SET boots = :boots, status = 'waiting', reason = NULL,"
            " ended_at = NULL, looks = looks + :more WHERE id = :id",
            id=number,
            boots=boots,
            more=1 if judged else 0,
        )

    def publish(self, number: int) -> None:
        self.execute("UPDATE comparison SET private_to = NULL WHERE id = :id", id=number)

    def latest_tip(self, tree: int) -> Comparison | None:
        number = self.scalar(
            "SELECT max(id) FROM comparison WHERE tree = :tree AND kind = 'watch' AND status ="
            " 'done'",
            tree=tree,
        )
        return self.get(number) if number is not None else None

    def move_part(self, comparison: int, testbox: str, spec: str, other: str) -> bool:
        moved = self.execute(
            "UPDATE comparison_part p SET testbox = :other WHERE (comparison, testbox, spec) ="
            " (:c, :testbox, :spec)"
            " AND NOT EXISTS (SELECT FROM comparison_part q WHERE (q.comparison, q.testbox,"
            " q.spec) = (:c, :other, :spec))",
            c=comparison,
            testbox=testbox,
            spec=spec,
            other=other,
        )
        if moved:
            self.execute(
                "DELETE FROM want w USING orders o WHERE o.id = w.order_id AND w.comparison = :c"
                " AND (o.testbox, o.spec) = (:testbox, :spec)",
                c=comparison,
                testbox=testbox,
                spec=spec,
            )
            self.execute(
                "UPDATE comparison SET status = 'waiting' WHERE id = :c AND status = 'running'",
                c=comparison,
            )
        return moved == 1


def _comparison(row: Mapping[Any, Any]) -> Comparison:
    return Comparison(
        **{
            **row,
            "arms": tuple(Arm(**arm) for arm in row["arms"]),
            "against": tuple(row["against"]),
            "columns": tuple(row["columns"]),
            "private_to": None if row["private_to"] is None else tuple(row["private_to"]),
            "parts": tuple((testbox, spec) for testbox, spec in row["parts"]),
        }
    )
