"""Swings in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from swingbot.core.model.records import Level, NewSwing, Swing
from swingbot.core.model.statuses import SwingSource, SwingState
from tests.fakes.store.tables import Noun, Refused, SwingRow


class Swings(Noun):
    def add(self, new: NewSwing) -> None:
        key = (new.comparison, new.testbox, new.unit_job, new.metric)
        if (*key, "first", 1) not in self.db.rows:
            raise Refused(f"there is no row {key}")
        if any(_key(row.swing) == key for row in self.db.swings.values()):
            return
        swing = Swing(
            id=self.db.next_id("swing"),
            comparison=new.comparison,
            testbox=new.testbox,
            unit_job=new.unit_job,
            metric=new.metric,
            direction=new.direction,
            change_pct=new.change_pct,
            state=new.state,
            bisection=None,
            source=new.source,
            anchor=new.anchor,
        )
        self.db.swings[swing.id] = SwingRow(swing=swing, evidence={"alarm": new.reason})

    def in_state(self, *states: SwingState) -> list[Swing]:
        return [row.swing for _, row in sorted(self.db.swings.items()) if row.swing.state in states]

    def _put(self, number: int, **values: Any) -> None:
        row = self.db.swings[number]
        self.db.swings[number] = replace(row, swing=replace(row.swing, **values))

    def set_state(self, number: int, state: SwingState, bisection: int | None = None) -> None:
        self._put(number, state=state)
        if bisection is not None:
            self._put(number, bisection=bisection)

    def recent_levels(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int, most: int
    ) -> list[Level]:
        found = []
        for number, row in sorted(self.db.comparisons.items(), reverse=True):
            comparison = row.comparison
            if (comparison.tree, comparison.kind, comparison.status) != (tree, "watch", "done"):
                continue
            measured = self.db.rows.get((number, testbox, unit_job, metric, "first", 1))
            if number < before and measured is not None and measured.head.mean is not None:
                found.append(
                    Level(
                        comparison=number,
                        variant=comparison.head,
                        commit=self.db.variants[comparison.head].commit,
                        mean=measured.head.mean,
                        stddev=measured.head.stddev,
                        boots=measured.head.boots,
                    )
                )
        return found[:most]

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
        return max(
            (
                swing.comparison
                for swing in (row.swing for row in self.db.swings.values())
                if self.db.comparisons[swing.comparison].comparison.tree == tree
                and swing.comparison < before
                and _key(swing)[1:] == (testbox, unit_job, metric)
                and swing.state != "known"
                and (swing.state != "refuted" or swing.source in refuted)
            ),
            default=None,
        )

    def narrow(self, swing: int, anchor: int | None, upto: int | None, change_pct: float) -> None:
        if self.db.swings[swing].swing.state == "suspected":
            self._put(
                swing,
                source="expected",
                anchor=anchor,
                upto=upto,
                change_pct=change_pct,
                proof=None,
            )

    def set_proof(self, swing: int, proof: int) -> None:
        if self.db.swings[swing].swing.proof is None:
            self._put(swing, proof=proof)

    def weigh(
        self,
        swing: int,
        state: SwingState,
        evidence: Mapping[str, Any],
        change_pct: float | None = None,
    ) -> None:
        row = self.db.swings[swing]
        if row.swing.state != "suspected":
            return
        self.db.swings[swing] = replace(row, evidence={**row.evidence, **evidence})
        self._put(swing, state=state)
        if change_pct is not None:
            self._put(swing, change_pct=change_pct)

    def of_bisection(self, bisection: int) -> list[Swing]:
        own, number = set(), self.db.bisections[bisection].bisection.id
        above: int | None = number
        while above is not None:
            own.add(above)
            above = self.db.bisections[above].parent
        return [
            swing
            for swing in self.in_state(
                "open", "bisecting", "explained", "not_bisected", "not_found"
            )
            if swing.bisection in own
        ]


def _key(swing: Swing) -> tuple[int, str, str, str]:
    return swing.comparison, swing.testbox, swing.unit_job, swing.metric
