"""Comparisons and their rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Arm, Comparison, NewComparison
from swingbot.core.model.statuses import OVER, ComparisonStatus
from tests.fakes.store.tables import Asked, Noun, Refused


class Comparisons(Noun):
    def add(self, new: NewComparison) -> int:
        for number, row in self.db.comparisons.items():
            if new.request_key is not None and row.comparison.request_key == new.request_key:
                return number
        if len({arm.name for arm in new.arms}) < len(new.arms):
            raise Refused("two arms of a comparison have one name")
        comparison = Comparison(
            id=self.db.next_id("comparison"),
            kind=new.kind,
            tree=new.tree,
            arms=tuple(new.arms),
            against=tuple(new.against),
            columns=tuple(new.columns),
            first_k=new.first_k,
            purpose=new.purpose,
            boots=new.boots,
            looks_stated=new.looks_stated,
            min_effect_pct=new.min_effect_pct or self.db.trees[new.tree].tree.min_effect_pct,
            status="waiting",
            parts=tuple(sorted(set(new.parts))),
            request_key=new.request_key,
            private_to=None if new.private_to is None else tuple(new.private_to),
        )
        self.db.comparisons[comparison.id] = Asked(
            comparison=comparison, created_at=self.db.begun, change=new.change
        )
        return comparison.id

    def get(self, number: int) -> Comparison | None:
        return self.db.comparisons[number].comparison if number in self.db.comparisons else None

    def lock(self, number: int) -> None:
        pass  # one transaction at a time

    def _where(self, wanted: Callable[[Comparison], bool]) -> list[Comparison]:
        found = (row.comparison for _, row in sorted(self.db.comparisons.items()))
        return [comparison for comparison in found if wanted(comparison)]

    def open(self) -> list[Comparison]:
        return self._where(lambda c: c.open)

    def of_request(self, request_key: str) -> Comparison | None:
        return next(iter(self._where(lambda c: c.request_key == request_key)), None)

    def _put(self, number: int, **values: Any) -> None:
        row = self.db.comparisons[number]
        self.db.comparisons[number] = replace(row, comparison=replace(row.comparison, **values))

    def set_status(self, number: int, status: ComparisonStatus, reason: str | None = None) -> None:
        row = self.db.comparisons[number]
        if row.comparison.status in OVER:
            return
        self._put(number, status=status, reason=reason)
        if status in OVER:
            self.db.comparisons[number] = replace(
                self.db.comparisons[number], ended_at=self.db.now()
            )

    def replace_rows(
        self, number: int, rows: Sequence[tuple[str, ComparisonRow]], unjudged: int = 0
    ) -> None:
        if any(swing.swing.comparison == number for swing in self.db.swings.values()):
            raise Refused("a swing is of a row of this comparison")
        for key in [key for key in self.db.rows if key[0] == number]:
            del self.db.rows[key]
        for spec, row in rows:
            place = {"arm": row.arm, "reference": row.reference, "against": row.against}
            stored = ComparisonRow.from_json({**row.to_json(), "spec": spec, **place})
            self.db.rows.setdefault((number, *row.key, row.against, row.arm), stored)

    def rows(self, comparison: int) -> list[ComparisonRow]:
        return [row for key, row in sorted(self.db.rows.items()) if key[0] == comparison]

    def extend(self, number: int, boots: int) -> None:
        known = self.db.comparisons[number].comparison
        if known.status == "running" and known.boots < boots:
            self._put(number, boots=boots, status="waiting")

    def renew(self, number: int, first_k: int) -> None:
        known = self.db.comparisons[number].comparison
        if known.status == "running" and known.first_k < first_k:
            self._put(number, first_k=first_k, status="waiting")

    def reopen(self, number: int, boots: int, arms: Sequence[Arm] = ()) -> None:
        row = self.db.comparisons[number]
        known = row.comparison
        names = {arm.name for arm in (*known.arms, *arms)}
        if len(names) < len(known.arms) + len(arms):
            raise Refused("two arms of a comparison have one name")
        self.db.comparisons[number] = replace(row, ended_at=None)
        self._put(
            number,
            arms=(*known.arms, *arms),
            boots=boots,
            status="waiting",
            reason=None,
            looks=known.looks + (known.status == "done"),
        )

    def publish(self, number: int) -> None:
        self._put(number, private_to=None)

    def latest_tip(self, tree: int) -> Comparison | None:
        tips = self._where(lambda c: (c.tree, c.kind, c.status) == (tree, "watch", "done"))
        return tips[-1] if tips else None

    def move_part(self, comparison: int, testbox: str, spec: str, other: str) -> bool:
        known = self.db.comparisons[comparison].comparison
        old, new = (testbox, spec), (other, spec)
        if old not in known.parts or new in known.parts:
            return False
        self._put(comparison, parts=tuple(sorted({*known.parts, new} - {old})))
        for key in list(self.db.wants):
            order = self.db.orders[key[0]].order
            if key[1] == comparison and (order.testbox, order.spec) == old:
                del self.db.wants[key]
        if known.status == "running":
            self._put(comparison, status="waiting")
        return True
