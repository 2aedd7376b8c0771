"""Bisections in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.conclusion import EndedSearch
from swingbot.core.model.records import Bisection, NewBisection
from swingbot.core.model.statuses import BisectionEnd, BisectionStatus
from swingbot.core.plan.relevance import hinted
from swingbot.service.ports.bisections import BisectionLife, BisectionPoint
from tests.fakes.store.tables import (
    BisectionRow,
    Noun,
    ObservationRow,
    PointRow,
    Refused,
    WantRow,
    iso_time,
)


class Bisections(Noun):
    def add(self, new: NewBisection) -> int:
        if (existing := self.of_request(new.request_key)) is not None:
            return existing.id
        number = self.db.next_id("bisection")
        bisection = Bisection(
            id=number,
            tree=new.tree,
            origin=new.origin,
            good=new.good,
            bad=new.bad,
            testbox=new.testbox,
            spec=new.spec,
            series=f"b{number}" if new.series is None else new.series,
            unit_job=new.unit_job,
            metric=new.metric,
            terms=new.terms,
            status="running",
        )
        self.db.bisections[number] = BisectionRow(
            bisection=bisection, request_key=new.request_key, created_at=self.db.begun
        )
        for idx, (variant, weight) in enumerate(new.points):
            self.db.points[number, idx] = PointRow(variant=variant.id, weight=weight)
        return number

    def of_request(self, request_key: str) -> Bisection | None:
        rows = self.db.bisections.values()
        return next((row.bisection for row in rows if row.request_key == request_key), None)

    def get(self, number: int) -> Bisection | None:
        return self.db.bisections[number].bisection if number in self.db.bisections else None

    def lock(self, number: int) -> None:
        pass  # one transaction at a time

    def status(self, number: int) -> BisectionStatus | None:
        return self.db.bisections[number].bisection.status if number in self.db.bisections else None

    def running(self) -> list[int]:
        found = sorted(self.db.bisections.items())
        return [number for number, row in found if row.bisection.status == "running"]

    def points(self, bisection: int) -> list[BisectionPoint]:
        rows = [row for key, row in sorted(self.db.points.items()) if key[0] == bisection]
        weights = hinted([(row.weight, row.hint) for row in rows])
        return [
            BisectionPoint(self.db.variants[row.variant], weight, row.skipped)
            for row, weight in zip(rows, weights, strict=True)
        ]

    def wants(self, bisection: int) -> list[WantedBoot]:
        rows = [row for key, row in self.db.bisection_wants.items() if key[0] == bisection]
        return [
            row.want
            for row in sorted(rows, key=lambda row: (row.asked_at, row.want.idx, row.want.k))
        ]

    def add_want(self, bisection: int, wanted: WantedBoot) -> None:
        if (bisection, wanted.idx) not in self.db.points:
            raise Refused(f"bisection {bisection} has no point {wanted.idx}")
        self.db.bisection_wants.setdefault(
            (bisection, *wanted.key), WantRow(want=wanted, asked_at=self.db.begun)
        )

    def move_want(self, bisection: int, idx: int, k: int, testbox: int) -> None:
        key = (bisection, idx, k)
        if key in self.db.bisection_wants and key not in self.db.observations:
            row = self.db.bisection_wants[key]
            self.db.bisection_wants[key] = replace(row, want=replace(row.want, testbox=testbox))

    def set_testboxes(self, bisection: int, names: Sequence[str]) -> None:
        known = self.db.bisections[bisection].bisection
        terms = replace(known.terms, testboxes=tuple(names))
        self._put(bisection, bisection=replace(known, terms=terms))

    def observations(self, bisection: int) -> list[Observation]:
        return [
            self._seen(key, row)
            for key, row in sorted(self.db.observations.items(), key=lambda item: item[0])
            if key[0] == bisection
        ]

    def _seen(self, key: tuple[int, int, int], row: ObservationRow) -> Observation:
        want = self.db.bisection_wants[key].want
        at = None if row.boot is None else self.db.boots[row.boot].booted_at.timestamp()
        return Observation(**asdict(want), values=row.values, skip=row.skip, at=at)

    def add_observation(
        self,
        bisection: int,
        idx: int,
        k: int,
        boot: int | None,
        values: Sequence[float],
        skip: str | None,
    ) -> None:
        key = (bisection, idx, k)
        if key not in self.db.bisection_wants or bool(values) == (skip is not None):
            raise Refused(f"{key} was not asked for, or has neither values nor a reason")
        row = ObservationRow(boot=boot, values=tuple(values), skip=skip)
        self.db.observations.setdefault(key, row)

    def _put(self, number: int, **values: Any) -> None:
        self.db.bisections[number] = replace(self.db.bisections[number], **values)

    def set_belief(self, bisection: int, belief: Mapping[str, Any]) -> None:
        self._put(bisection, belief=dict(belief))

    def conclude(
        self,
        bisection: int,
        status: BisectionEnd,
        conclusion: Mapping[str, Any],
        reason: str | None,
    ) -> None:
        known = self.db.bisections[bisection].bisection
        if known.status == "running":
            self._put(
                bisection,
                bisection=replace(known, status=status),
                conclusion=dict(conclusion),
                reason=reason,
                ended_at=self.db.now(),
            )

    def set_parent(self, bisection: int, parent: int, merged: str) -> None:
        if self.db.bisections[bisection].parent is None:
            self._put(bisection, parent=parent, merged=merged)

    def parent_of(self, bisection: int) -> tuple[int, str] | None:
        row = self.db.bisections.get(bisection)
        if row is None or row.parent is None or row.merged is None:
            return None
        return row.parent, row.merged

    def life_of(self, bisection: int) -> BisectionLife:
        row = self.db.bisections[bisection]
        ended = None if row.ended_at is None else iso_time(row.ended_at)
        return BisectionLife(iso_time(row.created_at), ended, row.reason)

    def branches_of(self, bisection: int) -> list[tuple[Bisection, str]]:
        return [
            (row.bisection, row.merged or "")
            for _, row in sorted(self.db.bisections.items())
            if row.parent == bisection
        ]

    def conclusion(self, bisection: int) -> EndedSearch:
        found = self.db.bisections[bisection].conclusion
        assert found is not None
        return EndedSearch.read(found)
