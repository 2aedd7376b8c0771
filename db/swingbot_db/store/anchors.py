"""Anchors: a known kernel that is booted repeatedly on its testbox."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from swingbot.core.model.records import (
    Comparison,
)
from swingbot.core.model.statuses import ComparisonStatus
from swingbot.core.moderation.aa_record import AnchorBoots
from swingbot.service.ports.anchors import AnchorKernel
from swingbot_db.store.comparisons import Comparisons
from swingbot_db.store.rows import Rows


class Anchors(Rows):
    def of_testbox(self, testbox: str, *statuses: ComparisonStatus) -> list[Comparison]:
        return Comparisons(self.conn)._comparisons(
            "c.kind = 'anchor' AND c.status = ANY(:statuses) AND EXISTS (SELECT FROM"
            " comparison_part p WHERE p.comparison = c.id AND p.testbox = :testbox)",
            statuses=list(statuses),
            testbox=testbox,
        )

    def kernel(self, testbox: str) -> AnchorKernel | None:
        row = self.select_one(
            "SELECT c.tree, c.base, p.spec FROM comparison_pair c JOIN comparison_part p ON"
            " p.comparison = c.id"
            " WHERE c.kind IN ('anchor', 'watch') AND c.status = 'done' AND p.testbox = :testbox"
            " ORDER BY CASE WHEN c.purpose = 'screen' THEN 2 WHEN c.kind = 'watch' THEN 1"
            " ELSE 0 END, c.id DESC LIMIT 1",
            testbox=testbox,
        )
        return AnchorKernel(row.tree, row.base, row.spec) if row else None

    def boots(self, testbox: str) -> list[AnchorBoots]:
        rows = self.select(
            "SELECT c.id, c.base, c.reason, ARRAY(SELECT (b.booted_at AT TIME ZONE 'UTC')::date"
            " FROM boot b WHERE b.testbox = :testbox AND b.series = 'c' || c.id AND b.outcome ="
            " 'up' ORDER BY b.id) AS days FROM (SELECT * FROM comparison_pair p WHERE p.kind ="
            " 'anchor' AND p.status = 'done' AND EXISTS (SELECT FROM comparison_part q WHERE"
            " q.comparison = p.id AND q.testbox = :testbox) ORDER BY p.id DESC LIMIT 1000) c"
            " ORDER BY c.id",
            testbox=testbox,
        )
        return [
            AnchorBoots(anchor=row.id, kernel=row.base, days=tuple(row.days), mark=row.reason)
            for row in rows
        ]

    def mark(self, number: int, mark: str) -> None:
        self.execute(
            "UPDATE comparison SET reason = :mark WHERE id = :id AND kind = 'anchor' AND reason IS"
            " NULL",
            id=number,
            mark=mark,
        )

    def set_answer(self, number: int, answer: Mapping[str, Any]) -> None:
        self.execute(
            "UPDATE comparison SET answer = CAST(:answer AS jsonb) WHERE id = :id AND kind ="
            " 'anchor'",
            id=number,
            answer=json.dumps(answer),
        )

    def asked_kernel(self, testbox: str) -> AnchorKernel | None:
        row = self.select_one(
            "SELECT c.tree, a.variant AS base, p.spec FROM comparison c"
            " JOIN comparison_arm a ON a.comparison = c.id AND a.arm = 0 JOIN comparison_part p ON"
            " p.comparison = c.id"
            " WHERE c.kind <> 'anchor' AND c.status IN ('waiting', 'running') AND p.testbox ="
            " :testbox ORDER BY c.id LIMIT 1",
            testbox=testbox,
        ) or self.select_one(
            "SELECT b.tree, p.variant AS base, b.spec FROM bisection b JOIN bisection_point p ON"
            " p.bisection = b.id AND p.idx = 0"
            " WHERE b.status = 'running' AND (b.testbox = :testbox OR b.terms -> 'testboxes' ?"
            " :testbox) ORDER BY b.id LIMIT 1",
            testbox=testbox,
        )
        return None if row is None else AnchorKernel(row.tree, row.base, row.spec)
