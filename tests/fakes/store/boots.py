"""Boots in memory."""

from __future__ import annotations

from collections.abc import Collection
from statistics import fmean
from typing import Any, cast

from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import BootNumbers, BootRecord, Order
from swingbot_jobs.contract.orders import BootOutcome
from tests.fakes.store.tables import BootRow, Noun, Refused, RunRow

_LATEST = 20


class Boots(Noun):
    def add(self, attempt: int, order: Order, image: str, outcome: Outcome) -> int | None:
        row = BootRow(
            id=self.db.next_id("boot"),
            attempt=attempt,
            order=order,
            image=image,
            outcome=cast(BootOutcome, outcome.status),
            reason=outcome.reason,
            facts=outcome.facts,
            files=outcome.files,
            seconds=outcome.seconds,
            origin=outcome.origin,
            booted_at=self.db.begun,
        )
        if order.build_key not in self.db.builds:
            raise Refused(f"kernel {order.build_key} was never built")
        if any(
            known.attempt == attempt or known.order.id == order.id or _key(known) == _key(row)
            for known in self.db.boots.values()
        ):
            return None
        self.db.boots[row.id] = row
        return row.id

    def find(
        self, image: str, testbox: str, spec: str, series: str, numbers: BootNumbers
    ) -> list[BootRecord]:
        keys = {(image, testbox, spec, series, numbers.purpose, k) for k in numbers.ks}
        found = [
            BootRecord(
                id=row.id,
                k=row.order.k or 0,
                outcome=row.outcome,
                reason=row.reason,
                seconds=row.seconds,
                facts=row.facts,
            )
            for row in self.db.boots.values()
            if _key(row) in keys
        ]
        return sorted(found, key=lambda boot: boot.k)

    def values(self, boot: int) -> dict[tuple[str, str], list[float]]:
        found: dict[tuple[str, str], list[float]] = {}
        for run in sorted(self._runs(boot), key=lambda run: (run.unit_job, run.number)):
            for metric, values in sorted(run.samples.items()) if run.status == "ok" else ():
                found.setdefault((run.unit_job, metric), []).append(fmean(values))
        return dict(sorted(found.items()))

    def problems(self, boot: int, unit_job: str) -> list[str]:
        return [
            run.reason or ""
            for run in sorted(self._runs(boot), key=lambda run: run.number)
            if run.unit_job == unit_job and run.status not in ("ok", "warmup")
        ]

    def _runs(self, boot: int) -> list[RunRow]:
        return [run for run in self.db.runs.values() if run.boot == boot]

    def seconds(self, testbox: str, spec: str) -> float | None:
        taken = [
            row.seconds
            for row in self._latest()
            if (row.order.testbox, row.order.spec, row.outcome) == (testbox, spec, "up")
        ][:_LATEST]
        return fmean(taken) if taken else None

    def latest_facts(self, testbox: str, *, image: str | None = None) -> dict[str, Any]:
        for row in self._latest():
            if (
                row.order.testbox == testbox
                and row.outcome == "up"
                and row.order.purpose != "doctor"
                and (image is None or row.image == image)
            ):
                return dict(row.facts)
        return {}

    def latest_facts_of(self, testboxes: Collection[str]) -> dict[str, dict[str, Any]]:
        return {testbox: self.latest_facts(testbox) for testbox in testboxes}

    def _latest(self) -> list[BootRow]:
        return sorted(self.db.boots.values(), key=lambda row: row.id, reverse=True)


def _key(row: BootRow) -> tuple[str, str | None, str | None, str | None, str, int | None]:
    order = row.order
    return row.image, order.testbox, order.spec, order.series, order.purpose, order.k
