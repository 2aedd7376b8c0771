"""Anchors in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from swingbot.core.model.records import Bisection, Comparison
from swingbot.core.model.statuses import ComparisonStatus
from swingbot.core.moderation.aa_record import AnchorBoots
from swingbot.service.ports.anchors import AnchorKernel
from tests.fakes.store.comparisons import Comparisons
from tests.fakes.store.tables import Noun


class Anchors(Noun):
    def of_testbox(self, testbox: str, *statuses: ComparisonStatus) -> list[Comparison]:
        return Comparisons(self.db)._where(
            lambda c: c.kind == "anchor" and c.status in statuses and _spec_on(c, testbox) != ""
        )

    def kernel(self, testbox: str) -> AnchorKernel | None:
        done = Comparisons(self.db)._where(
            lambda c: c.kind in ("anchor", "watch") and c.status == "done" and c.purpose != "doctor"
        )
        here = [c for c in done if _spec_on(c, testbox)]
        order = {"anchor": 2, "watch": 1}
        last = max(
            here,
            key=lambda c: (0 if c.purpose == "screen" else order[c.kind], c.id),
            default=None,
        )
        return None if last is None else AnchorKernel(last.tree, last.base, _spec_on(last, testbox))

    def boots(self, testbox: str) -> list[AnchorBoots]:
        return [
            AnchorBoots(
                anchor=c.id,
                kernel=c.base,
                days=tuple(
                    boot.booted_at.date()
                    for boot in self.db.boots.values()
                    if boot.order.testbox == testbox
                    and boot.order.series == f"c{c.id}"
                    and boot.outcome == "up"
                ),
                mark=c.reason,
            )
            for c in self.of_testbox(testbox, "done")
            if c.purpose != "doctor"
        ]

    def mark(self, number: int, mark: str) -> None:
        row = self.db.comparisons[number]
        if row.comparison.kind == "anchor" and row.comparison.reason is None:
            self.db.comparisons[number] = replace(
                row, comparison=replace(row.comparison, reason=mark)
            )

    def set_answer(self, number: int, answer: Mapping[str, Any]) -> None:
        row = self.db.comparisons[number]
        self.db.comparisons[number] = replace(row, answer=dict(answer))

    def asked_kernel(self, testbox: str) -> AnchorKernel | None:
        for c in Comparisons(self.db)._where(lambda c: c.kind != "anchor" and c.open):
            if spec := _spec_on(c, testbox):
                return AnchorKernel(c.tree, c.base, spec)
        for row in self.db.bisections.values():
            if row.bisection.status == "running" and _is_on(row.bisection, testbox):
                variant = self.db.points[row.bisection.id, 0].variant
                return AnchorKernel(row.bisection.tree, variant, row.bisection.spec)
        return None


def _spec_on(comparison: Comparison, testbox: str) -> str:
    """What a comparison runs on the testbox; "" if nothing."""
    return next((spec for name, spec in comparison.parts if name == testbox), "")


def _is_on(bisection: Bisection, testbox: str) -> bool:
    return testbox == bisection.testbox or testbox in bisection.terms.testboxes
