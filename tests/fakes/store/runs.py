"""Runs and their samples in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from swingbot.core.model.records import StoredBoot, StoredRun
from swingbot.core.raw.changes import ChangedValues
from swingbot.core.results.metric_names import MetricNames
from swingbot_jobs.reading.result import ParsedRun
from tests.fakes.store.tables import BootRow, Noun, Refused, RunRow


class Runs(Noun):
    def add(self, boot: int, runs: Sequence[ParsedRun], parsers: Mapping[str, str]) -> None:
        for run in runs:
            if any(
                (known.boot, known.unit_job, known.number) == (boot, run.unit_job, run.number)
                for known in self.db.runs.values()
            ):
                raise Refused(f"boot {boot} has run {run.number} of {run.unit_job}")
            row = RunRow(
                id=self.db.next_id("run"),
                boot=boot,
                unit_job=run.unit_job,
                number=run.number,
                status=run.status,
                reason=run.reason,
                seconds=run.seconds,
                parser=parsers.get(run.unit_job),
                samples={metric: list(values) for metric, values in run.samples.items() if values},
            )
            self.db.runs[row.id] = row

    def metric_names(self, boot: int, runs: Sequence[ParsedRun]) -> dict[str, MetricNames]:
        own = self.db.boots[boot].order
        trusted = self._trusted(own.variant)
        names: dict[str, dict[bool, set[str]]] = {
            run.unit_job: {True: set(), False: set()} for run in runs
        }
        for row in self.db.runs.values():
            order = self.db.boots[row.boot].order
            if order.testbox == own.testbox and row.unit_job in names:
                names[row.unit_job][self._trusted(order.variant)] |= row.samples.keys()
        asked: dict[str, set[str]] = {job: set() for job in names}
        for run in runs:
            asked[run.unit_job] |= run.samples.keys()
        return {
            job: MetricNames(
                free=frozenset(asked[job] & (of[True] if trusted else of[True] | of[False])),
                counted=len(of[True] if trusted else of[False] - of[True]),
            )
            for job, of in names.items()
        }

    def _trusted(self, variant: int) -> bool:
        return self.db.variants[variant].trust == "trusted"

    def boots_with_results(
        self, after: int, most: int, program: str | None = None
    ) -> list[StoredBoot]:
        return [
            StoredBoot(
                id=row.id,
                testbox=row.order.testbox or "",
                spec=row.order.spec or "",
                outcome=row.outcome,
                reason=row.reason,
                results=row.files["results.tar"]["sha256"],
                facts=row.facts,
            )
            for row in self._with_results(program)
            if row.id > after
        ][:most]

    def count_boots_with_results(self, program: str | None = None) -> int:
        return len(self._with_results(program))

    def _with_results(self, program: str | None) -> list[BootRow]:
        return [
            row
            for row in self.db.boots.values()
            if "results.tar" in row.files
            and (
                program is None
                or any(job.program == program for job in self.db.specs[row.order.spec or ""])
            )
        ]

    def of_boot(self, boot: int, *, lock: bool = False) -> list[StoredRun]:
        return [
            StoredRun(
                id=row.id,
                unit_job=row.unit_job,
                number=row.number,
                status=row.status,
                reason=row.reason,
                seconds=row.seconds,
                parser=row.parser,
                samples={metric: list(row.samples[metric]) for metric in sorted(row.samples)},
            )
            for row in self.db.runs.values()
            if row.boot == boot
        ]

    def replace(
        self, old: StoredRun, new: ParsedRun, parser: str, changes: Mapping[str, ChangedValues]
    ) -> None:
        row = self.db.runs[old.id]
        samples = {metric: v for metric, v in row.samples.items() if metric not in changes}
        samples |= {metric: list(change.new) for metric, change in changes.items() if change.new}
        self.db.runs[old.id] = replace(
            row,
            status=new.status,
            reason=new.reason,
            seconds=new.seconds,
            parser=parser,
            samples=samples,
        )

    def requests_of_boots(self, boots: Iterable[int]) -> tuple[list[int], list[int]]:
        orders = {self.db.boots[boot].order.id for boot in boots if boot in self.db.boots}
        wants = [(c, b) for order, c, b in self.db.wants if order in orders]
        return sorted({c for c, _ in wants if c is not None}), sorted(
            {b for _, b in wants if b is not None}
        )
