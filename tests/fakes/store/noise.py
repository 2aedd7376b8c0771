"""Noise records in memory."""

from __future__ import annotations

from collections.abc import Collection
from statistics import fmean

from swingbot.core.model.noise import NoiseRecord, PastBoot
from swingbot.service.ports.noise import MeasuredBoots
from swingbot_jobs.contract.unit_job import UnitJob
from tests.fakes.store.tables import BootRow, Noun


class Noise(Noun):
    def measured_boots(self, testbox: str) -> dict[tuple[str, str], MeasuredBoots]:
        recent = self._measured(testbox)
        found: dict[tuple[str, str], MeasuredBoots] = {}
        keys = sorted(
            {(row.order.spec or "", row.order.purpose, row.order.k or 0) for row in recent}
        )
        programs = {job.program for row in recent for job in self.db.specs[row.order.spec or ""]}
        for row in recent:
            rank = 1 + keys.index((row.order.spec or "", row.order.purpose, row.order.k or 0))
            for key, values in self._values(row, programs).items():
                boots, since, _ = found.get(key, MeasuredBoots([], row.booted_at, row.booted_at))
                boots.append(self._boot(row, rank, tuple(values)))
                found[key] = MeasuredBoots(boots, since, row.booted_at)
        return found

    def _values(self, row: BootRow, programs: set[str]) -> dict[tuple[str, str], list[float]]:
        values: dict[tuple[str, str], list[float]] = {}
        runs = [run for run in self.db.runs.values() if (run.boot, run.status) == (row.id, "ok")]
        for run in sorted(runs, key=lambda run: run.number):
            for metric, samples in run.samples.items():
                if metric.partition(".")[0] in programs:
                    values.setdefault((run.unit_job, metric), []).append(fmean(samples))
        return values

    def _boot(self, row: BootRow, rank: int, values: tuple[float, ...]) -> PastBoot:
        code = min(
            v.tree_hash + v.kconfig + v.compiler
            for v in self.db.variants.values()
            if v.build_key == row.order.build_key
        )
        spec = row.order.spec or ""
        return PastBoot(
            code=code + spec,
            image=row.image + spec,
            day=row.booted_at.strftime("%Y-%m-%d"),
            k=rank,
            shared=row.order.series == "",
            values=values,
        )

    def _measured(self, testbox: str) -> list[BootRow]:
        return [
            row
            for row in self.db.boots.values()
            if (row.order.testbox, row.outcome, row.origin) == (testbox, "up", "measured")
            and row.order.purpose != "doctor"
        ]

    def measured_jobs(self, testbox: str) -> dict[str, UnitJob]:
        rows = self._measured(testbox)
        specs = [row.order.spec or "" for row in rows]
        return {job.name: job for spec in specs for job in self.db.specs[spec]}

    def with_fresh_boots(
        self, testboxes: Collection[str], least: int, share: float
    ) -> dict[str, int]:
        enough = {}
        for testbox in testboxes:
            ids = [row.id for row in self._measured(testbox)]
            made = [through for key, (_, through) in self.db.noise.items() if key[0] == testbox]
            fresh = [number for number in ids if number > max(made, default=0)]
            if len(fresh) >= max(1, least, share * len(ids)):
                enough[testbox] = max(fresh)
        return enough

    def put(
        self, testbox: str, unit_job: str, metric: str, record: NoiseRecord, through: int
    ) -> None:
        self.db.noise[testbox, unit_job, metric] = (record, through)

    def get(self, testbox: str, unit_job: str, metric: str) -> NoiseRecord | None:
        found = self.db.noise.get((testbox, unit_job, metric))
        return None if found is None else found[0]
