"""Swings among the rows of comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from swingbot.core.model.records import (
    Level,
    NewSwing,
    Swing,
)
from swingbot.core.model.statuses import SwingSource, SwingState
from swingbot_db.store.fragments import UPWARDS
from swingbot_db.store.rows import Rows, records

_LEVELS = """
SELECT c.id AS comparison, c.head AS variant, v.commit, (r.detail->'head'->>'mean')::double
  precision AS mean, (r.detail->'head'->>'stddev')::double precision AS stddev,
  (r.detail->'head'->>'boots')::integer AS boots
FROM comparison_pair c JOIN comparison_row r ON r.comparison = c.id JOIN variant v ON v.id = c.head
WHERE c.tree = :tree AND c.kind = 'watch' AND c.status = 'done' AND c.id < :before
  AND (r.testbox, r.unit_job, r.metric) = (:testbox, :job, :metric)
    AND r.detail->'head'->>'mean' IS NOT NULL
ORDER BY c.id DESC LIMIT :most
"""


class Swings(Rows):
    def add(self, new: NewSwing) -> None:
        self.execute(
            "INSERT INTO swing (comparison, testbox, unit_job, metric, direction, change_pct,"
            " state, source, anchor, evidence)"
            " VALUES (:c, :testbox, :job, :metric, :direction, :pct, :state, :source, :anchor,"
            " CAST(:evidence AS jsonb)) ON CONFLICT DO NOTHING",
            c=new.comparison,
            testbox=new.testbox,
            job=new.unit_job,
            metric=new.metric,
            direction=new.direction,
            pct=new.change_pct,
            state=new.state,
            source=new.source,
            anchor=new.anchor,
            evidence=json.dumps({"alarm": new.reason}),
        )

    def in_state(self, *states: SwingState) -> list[Swing]:
        rows = self.select(
            "SELECT id, comparison, testbox, unit_job, metric, direction, change_pct, state,"
            " bisection, source, anchor, upto, proof FROM swing"
            " WHERE state = ANY(:states) ORDER BY id",
            states=list(states),
        )
        return records(Swing, rows)

    def set_state(self, number: int, state: SwingState, bisection: int | None = None) -> None:
        self.execute(
            "UPDATE swing SET state = :state, bisection = COALESCE(:b, bisection) WHERE id = :id",
            id=number,
            state=state,
            b=bisection,
        )

    def recent_levels(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int, most: int
    ) -> list[Level]:
        rows = self.select(
            _LEVELS,
            tree=tree,
            before=before,
            testbox=testbox,
            job=unit_job,
            metric=metric,
            most=most,
        )
        return records(Level, rows)

    def last(
        self,
        tree: int,
        testbox: str,
        unit_job: str,
        metric: str,
        *,
        before: int,
        refuted: Sequence[SwingSource] = ("history", "creep"),
    ) -> int | None:
        comparison = self.scalar(
            "SELECT max(c.id) FROM swing s JOIN comparison c ON c.id = s.comparison WHERE c.tree ="
            " :tree AND c.id < :before"
            " AND (s.testbox, s.unit_job, s.metric) = (:testbox, :job, :metric) AND s.state <>"
            " 'known' AND (s.state <> 'refuted' OR s.source = ANY(:refuted))",
            tree=tree,
            before=before,
            testbox=testbox,
            job=unit_job,
            metric=metric,
            refuted=list(refuted),
        )
        assert comparison is None or isinstance(comparison, int)
        return comparison

    def narrow(self, swing: int, anchor: int | None, upto: int | None, change_pct: float) -> None:
        self.execute(
            "UPDATE swing SET source = 'expected', anchor = :anchor, upto = :upto, change_pct ="
            " :pct, proof = NULL WHERE id = :id AND state = 'suspected'",
            id=swing,
            anchor=anchor,
            upto=upto,
            pct=change_pct,
        )

    def set_proof(self, swing: int, proof: int) -> None:
        self.execute(
            "UPDATE swing SET proof = :proof WHERE id = :id AND proof IS NULL",
            id=swing,
            proof=proof,
        )

    def weigh(
        self,
        swing: int,
        state: SwingState,
        evidence: Mapping[str, Any],
        change_pct: float | None = None,
    ) -> None:
        self.execute(
            "UPDATE swing SET state = :state, evidence = evidence || CAST(:evidence AS jsonb),"
            " change_pct = COALESCE(:pct, change_pct)"
            " WHERE id = :id AND state = 'suspected'",
            id=swing,
            state=state,
            evidence=json.dumps(evidence),
            pct=change_pct,
        )

    def of_bisection(self, bisection: int) -> list[Swing]:
        own = set(
            self.conn.execute(
                sa.text(f"{UPWARDS} SELECT id FROM upwards WHERE low = :b"), {"b": bisection}
            ).scalars()
        )
        return [
            swing
            for swing in self.in_state(
                "open", "bisecting", "explained", "not_bisected", "not_found"
            )
            if swing.bisection in own
        ]
