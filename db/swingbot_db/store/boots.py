"""Boots: their outcomes, the values of their runs, the facts of the testbox."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import (
    BootNumbers,
    BootRecord,
    Order,
)
from swingbot_db.store.rows import Rows, records

# Mean seconds of the last boots of a spec that came up on a testbox: one that hung lasted as long
# as its limit allowed.
MEAN_SECONDS: Final = (
    "SELECT avg(seconds)::float8 FROM (SELECT seconds FROM boot WHERE testbox = {testbox}"
    " AND spec = {spec} AND outcome = 'up' ORDER BY id DESC LIMIT 20) AS own"
)


class Boots(Rows):
    def add(self, attempt: int, order: Order, image: str, outcome: Outcome) -> int | None:
        boot = self.scalar(
            "INSERT INTO boot (attempt, order_id, testbox, build_key, image_sha256, spec, series,"
            " k, purpose, outcome, reason, facts, files, seconds, origin)"
            " VALUES (:attempt, :order, :testbox, :key, :image, :spec, :series, :k, :purpose,"
            " :outcome, :reason,"
            " CAST(:facts AS jsonb), CAST(:files AS jsonb), :seconds, :origin)"
            " ON CONFLICT DO NOTHING RETURNING id",
            attempt=attempt,
            order=order.id,
            testbox=order.testbox,
            key=order.build_key,
            image=image,
            spec=order.spec,
            series=order.series,
            k=order.k,
            purpose=order.purpose,
            outcome=outcome.status,
            reason=outcome.reason,
            facts=json.dumps(outcome.facts),
            files=json.dumps(outcome.files),
            seconds=outcome.seconds,
            origin=outcome.origin,
        )
        assert boot is None or isinstance(boot, int)
        return boot

    def find(
        self, image: str, testbox: str, spec: str, series: str, numbers: BootNumbers
    ) -> list[BootRecord]:
        rows = self.select(
            "SELECT id, k, outcome, reason, seconds, facts FROM boot WHERE image_sha256 = :image"
            " AND testbox = :testbox AND spec = :spec AND series = :series"
            " AND purpose = :purpose AND k = ANY(:ks) ORDER BY k",
            image=image,
            testbox=testbox,
            spec=spec,
            series=series,
            purpose=numbers.purpose,
            ks=list(numbers.ks),
        )
        return records(BootRecord, rows)

    def values(self, boot: int) -> dict[tuple[str, str], list[float]]:
        rows = self.select(
            "SELECT r.unit_job, m.metric, avg(s.value) AS value FROM run r JOIN sample s ON s.run"
            " = r.id JOIN measured_metric m ON m.id = s.measured"
            " WHERE r.boot = :boot AND r.status = 'ok'"
            " GROUP BY r.unit_job, m.metric, r.number ORDER BY r.unit_job, m.metric, r.number",
            boot=boot,
        )
        values: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            values.setdefault((row.unit_job, row.metric), []).append(row.value)
        return values

    def problems(self, boot: int, unit_job: str) -> list[str]:
        return [
            row.reason
            for row in self.select(
                "SELECT reason FROM run WHERE boot = :boot AND unit_job = :job AND status NOT IN"
                " ('ok', 'warmup') ORDER BY number",
                boot=boot,
                job=unit_job,
            )
        ]

    def seconds(self, testbox: str, spec: str) -> float | None:
        seconds = self.scalar(
            MEAN_SECONDS.format(testbox=":testbox", spec=":spec"), testbox=testbox, spec=spec
        )
        return None if seconds is None else float(seconds)

    def latest_facts(self, testbox: str, *, image: str | None = None) -> dict[str, Any]:
        facts = self.scalar(
            "SELECT facts FROM boot WHERE testbox = :testbox AND outcome = 'up'"
            " AND purpose <> 'doctor'"
            f" {'AND image_sha256 = :image' if image is not None else ''} ORDER BY id DESC LIMIT 1",
            testbox=testbox,
            **({} if image is None else {"image": image}),
        )
        return dict(facts or {})

    def latest_facts_of(self, testboxes: Collection[str]) -> dict[str, dict[str, Any]]:
        rows = self.select(
            "SELECT n.testbox, b.facts FROM unnest(CAST(:testboxes AS text[])) AS n (testbox)"
            " CROSS JOIN LATERAL (SELECT facts FROM boot WHERE testbox = n.testbox AND outcome ="
            " 'up' AND purpose <> 'doctor' ORDER BY id DESC LIMIT 1) b",
            testboxes=list(testboxes),
        )
        known = {row.testbox: dict(row.facts) for row in rows}
        return {testbox: known.get(testbox, {}) for testbox in testboxes}
