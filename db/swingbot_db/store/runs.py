"""Runs and their samples, as parsed from raw results."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model.records import (
    StoredBoot,
    StoredRun,
)
from swingbot.core.raw.changes import ChangedValues
from swingbot.core.raw.result_root import ResultRootParts, result_root
from swingbot.core.results.metric_names import MetricNames
from swingbot_db.store.rows import Rows, records
from swingbot_jobs.reading.result import ParsedRun, Samples

MetricKey = tuple[str, str]  # unit job, metric
NumberedSamples = Mapping[int, Sequence[float]]  # values by the number of their metric
_COPY_ROWS: Final = 50_000  # rows of one COPY buffer: some MB
_NUMBERS = """
SELECT m.id, m.unit_job, m.metric, m.trusted
FROM unnest(CAST(:jobs AS text[]), CAST(:metrics AS text[])) AS n (unit_job, metric)
CROSS JOIN LATERAL (SELECT * FROM measured_metric WHERE testbox = :testbox
  AND unit_job = n.unit_job AND metric = n.metric OFFSET 0) m
"""
_NEW_NUMBERS = """
INSERT INTO measured_metric AS m (testbox, unit_job, metric, trusted)
SELECT :testbox, n.unit_job, n.metric, :trusted
FROM unnest(CAST(:jobs AS text[]), CAST(:metrics AS text[])) AS n (unit_job, metric)
ORDER BY n.unit_job, n.metric
ON CONFLICT (testbox, unit_job, metric) DO UPDATE SET trusted = true
  WHERE excluded.trusted AND NOT m.trusted
"""
_COUNTED = """
SELECT unit_job, count(*) AS counted FROM measured_metric
WHERE testbox = :testbox AND unit_job = ANY(:jobs) AND trusted = :trusted GROUP BY unit_job
"""
_KERNEL = """
SELECT x.testbox, v.trust = 'trusted' AS trusted
FROM boot x JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant
WHERE x.id = :boot
"""
_MEASURED = """
SELECT t.tbox_group, x.facts ->> 'rootfs' AS rootfs, v.kconfig, v.layout, v.compiler,
  kb.compiler_version, v.commit, s.unit_jobs
FROM boot x JOIN testbox t ON t.name = x.testbox JOIN orders o ON o.id = x.order_id
  JOIN variant v ON v.id = o.variant
JOIN kernel_build kb ON kb.build_key = x.build_key JOIN boot_spec s ON s.sha256 = x.spec
  WHERE x.id = :boot
"""
_INSERT = """
INSERT INTO run (boot, unit_job, number, status, reason, seconds, parser, result_root, root_run)
SELECT CAST(:boot AS bigint), u.*
FROM unnest(CAST(:jobs AS text[]), CAST(:numbers AS integer[]), CAST(:statuses AS text[]),
  CAST(:reasons AS text[]),
     CAST(:seconds AS double precision[]), CAST(:parsers AS text[]), CAST(:roots AS bigint[]),
       CAST(:root_runs AS integer[])) AS u
RETURNING id, unit_job, number
"""
# Boots with results; with :program, those whose spec has that program.
_WITH_RESULTS = """FROM boot x JOIN boot_spec s ON s.sha256 = x.spec
WHERE x.files ? 'results.tar' AND (CAST(:program AS text) IS NULL
    OR s.unit_jobs @> jsonb_build_array(jsonb_build_object('program', CAST(:program AS text))))"""


class Runs(Rows):
    def add(self, boot: int, runs: Sequence[ParsedRun], parsers: Mapping[str, str]) -> None:
        self.execute("SET LOCAL synchronous_commit = off")
        places = self._places(boot, runs)
        inserted = self.select(
            _INSERT,
            boot=boot,
            jobs=[run.unit_job for run in runs],
            numbers=[run.number for run in runs],
            statuses=[run.status for run in runs],
            reasons=[run.reason for run in runs],
            seconds=[run.seconds for run in runs],
            parsers=[parsers.get(run.unit_job) for run in runs],
            roots=[root for root, _ in places],
            root_runs=[number for _, number in places],
        )
        ids = {(row.unit_job, row.number): row.id for row in inserted}
        numbers = self._numbers(boot, _measured(runs))
        self._copy_samples(
            (ids[run.unit_job, run.number], _numbered(run.unit_job, run.samples, numbers))
            for run in runs
        )

    def metric_names(self, boot: int, runs: Sequence[ParsedRun]) -> dict[str, MetricNames]:
        kernel = self.select_one(_KERNEL, boot=boot)
        assert kernel is not None
        counted = self.select(
            _COUNTED, **kernel._mapping, jobs=sorted({run.unit_job for run in runs})
        )
        counts = {row.unit_job: row.counted for row in counted}
        free: dict[str, set[str]] = {run.unit_job: set() for run in runs}
        for row in self._known(kernel.testbox, sorted(_measured(runs))):
            if row.trusted or not kernel.trusted:
                free[row.unit_job].add(row.metric)
        return {
            job: MetricNames(free=frozenset(names), counted=counts.get(job, 0))
            for job, names in free.items()
        }

    def _numbers(self, boot: int, measured: Set[MetricKey]) -> dict[MetricKey, int]:
        """Numbers of all metrics of these unit jobs there; those that are new get one."""
        kernel = self.select_one(_KERNEL, boot=boot)
        assert kernel is not None
        testbox, trusted = kernel.testbox, kernel.trusted
        keys = sorted(measured)  # two writers cannot deadlock
        rows = self._known(testbox, keys)
        known = {(row.unit_job, row.metric) for row in rows if row.trusted or not trusted}
        if new := [key for key in keys if key not in known]:
            self.execute(_NEW_NUMBERS, testbox=testbox, trusted=trusted, **_columns(new))
            rows = self._known(testbox, keys)
        return {(row.unit_job, row.metric): row.id for row in rows}

    def _known(self, testbox: str, keys: Sequence[MetricKey]) -> Sequence[sa.Row[Any]]:
        return self.select(_NUMBERS, testbox=testbox, **_columns(keys))

    def _places(self, boot: int, runs: Sequence[ParsedRun]) -> list[tuple[int, int]]:
        """(result root, number in it) for each run.

        The rows of the result roots stay locked, so that each number is used once.
        """
        row = self.select_one(_MEASURED, boot=boot)
        assert row is not None
        fields = dict(row._mapping)
        programs = {job["name"]: job["program"] for job in fields.pop("unit_jobs")}
        named = {
            job: result_root(
                ResultRootParts(
                    program=programs.get(job, job.partition("-")[0]), unit_job=job, **fields
                )
            )
            for job in sorted({r.unit_job for r in runs})
        }
        # Sorted, so that two writers cannot deadlock; the update changes nothing but locks the row.
        rows = self.select(
            "INSERT INTO result_root AS o (name) SELECT unnest(CAST(:names AS text[])) ORDER BY 1"
            " ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id, name",
            names=sorted(set(named.values())),
        )
        roots = {row.name: row.id for row in rows}
        used = self.select(
            "SELECT result_root, max(root_run) AS last FROM run WHERE result_root = ANY(:roots)"
            " GROUP BY 1",
            roots=list(roots.values()),
        )
        last = {row.result_root: row.last for row in used}
        following = {name: last.get(root, -1) + 1 for name, root in roots.items()}
        places = []
        for run in runs:
            name = named[run.unit_job]
            places.append((roots[name], following[name]))
            following[name] += 1
        return places

    def _copy_samples(self, runs: Iterable[tuple[int, NumberedSamples]]) -> None:
        lines = _lines(runs)
        cursor = self.conn.connection.cursor()
        try:
            while text := "".join(islice(lines, _COPY_ROWS)):
                cursor.copy_expert(
                    "COPY sample (run, measured, seq, value) FROM STDIN", io.StringIO(text)
                )
        finally:
            cursor.close()

    def boots_with_results(
        self, after: int, most: int, program: str | None = None
    ) -> list[StoredBoot]:
        rows = self.select(
            "SELECT x.id, x.testbox, x.spec, x.outcome, x.reason,"
            " x.files -> 'results.tar' ->> 'sha256' AS results, x.facts"
            f" {_WITH_RESULTS} AND x.id > :after ORDER BY x.id LIMIT :most",
            after=after,
            most=most,
            program=program,
        )
        return records(StoredBoot, rows)

    def count_boots_with_results(self, program: str | None = None) -> int:
        return int(self.scalar(f"SELECT count(*) {_WITH_RESULTS}", program=program))

    def of_boot(self, boot: int, *, lock: bool = False) -> list[StoredRun]:
        rows = self.select(
            "SELECT id, unit_job, number, status, reason, seconds, parser FROM run WHERE boot ="
            f" :boot ORDER BY id {'FOR UPDATE' if lock else ''}",
            boot=boot,
        )
        samples: dict[int, Samples] = {}
        for row in self.select(
            "SELECT s.run, m.metric, s.value FROM sample s JOIN run r ON r.id = s.run"
            " JOIN measured_metric m ON m.id = s.measured WHERE r.boot = :boot"
            " ORDER BY 1, 2, s.seq",
            boot=boot,
        ):
            samples.setdefault(row.run, {}).setdefault(row.metric, []).append(row.value)
        return [StoredRun(**row._mapping, samples=samples.get(row.id, {})) for row in rows]

    def replace(
        self, old: StoredRun, new: ParsedRun, parser: str, changes: Mapping[str, ChangedValues]
    ) -> None:
        if changes or (old.status, old.reason) != (new.status, new.reason):
            self.execute(
                "INSERT INTO reparse (run, old_parser, new_parser, old_status, new_status, changes)"
                " VALUES (:run, :old_parser, :new_parser, :old_status, :new_status, CAST(:changes"
                " AS jsonb))",
                run=old.id,
                old_parser=old.parser,
                new_parser=parser,
                old_status=old.status,
                new_status=new.status,
                changes=json.dumps(
                    {
                        metric: {"old": list(change.old), "new": list(change.new)}
                        for metric, change in changes.items()
                    }
                ),
            )
        if changes:
            boot = self.scalar("SELECT boot FROM run WHERE id = :run", run=old.id)
            numbers = self._numbers(boot, {(old.unit_job, metric) for metric in changes})
            self.execute(
                "DELETE FROM sample WHERE run = :run AND measured = ANY(:numbers)",
                run=old.id,
                numbers=[numbers[old.unit_job, metric] for metric in changes],
            )
            samples = {metric: list(change.new) for metric, change in changes.items() if change.new}
            self._copy_samples([(old.id, _numbered(old.unit_job, samples, numbers))])
        self.execute(
            "UPDATE run SET status = :status, reason = :reason, seconds = :seconds, parser ="
            " :parser WHERE id = :id",
            id=old.id,
            status=new.status,
            reason=new.reason,
            seconds=new.seconds,
            parser=parser,
        )

    def requests_of_boots(self, boots: Iterable[int]) -> tuple[list[int], list[int]]:
        rows = self.select(
            "SELECT DISTINCT w.comparison, w.bisection FROM want w JOIN boot x ON x.order_id ="
            " w.order_id WHERE x.id = ANY(:boots)",
            boots=list(boots),
        )
        return sorted({row.comparison for row in rows if row.comparison}), sorted(
            {row.bisection for row in rows if row.bisection}
        )


def _measured(runs: Iterable[ParsedRun]) -> set[MetricKey]:
    return {(run.unit_job, metric) for run in runs for metric in run.samples}


def _columns(keys: Sequence[MetricKey]) -> dict[str, list[str]]:
    return {"jobs": [job for job, _ in keys], "metrics": [metric for _, metric in keys]}


def _numbered(unit_job: str, samples: Samples, numbers: Mapping[MetricKey, int]) -> NumberedSamples:
    return {numbers[unit_job, metric]: values for metric, values in samples.items()}


def _lines(runs: Iterable[tuple[int, NumberedSamples]]) -> Iterator[str]:
    """Rows in COPY's text format; `repr` of a float round-trips."""
    for run, samples in runs:
        for measured, values in samples.items():
            for seq, value in enumerate(values):
                yield f"{run}\t{measured}\t{seq}\t{float(value)!r}\n"
