"""Bisections: points, wants, observations, belief, conclusion."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from swingbot.core.model.bisection import BisectionTerms, Observation, WantedBoot
from swingbot.core.model.conclusion import EndedSearch
from swingbot.core.model.records import (
    Bisection,
    NewBisection,
    Variant,
)
from swingbot.core.model.statuses import BisectionEnd, BisectionStatus
from swingbot.core.plan.relevance import hinted
from swingbot.service.ports.bisections import BisectionLife, BisectionPoint
from swingbot_db.store.rows import Rows, iso_time, records
from swingbot_jobs import codec

BISECTION = "id, tree, origin, good, bad, testbox, spec, series, unit_job, metric, terms, status"


class Bisections(Rows):
    def add(self, new: NewBisection) -> int:
        number = self.scalar(
            "INSERT INTO bisection (tree, origin, good, bad, testbox, spec, series, unit_job,"
            " metric, terms, request_key)"
            " VALUES (:tree, :origin, :good, :bad, :testbox, :spec, '', :job, :metric,"
            " CAST(:terms AS jsonb), :key) ON CONFLICT DO NOTHING RETURNING id",
            tree=new.tree,
            origin=new.origin,
            good=new.good,
            bad=new.bad,
            testbox=new.testbox,
            spec=new.spec,
            job=new.unit_job,
            metric=new.metric,
            terms=json.dumps(codec.plain(new.terms)),
            key=new.request_key,
        )
        if number is None:
            existing = self.of_request(new.request_key)
            assert existing is not None
            return existing.id
        self.execute(
            "UPDATE bisection SET series = :series WHERE id = :id",
            id=number,
            series=f"b{number}" if new.series is None else new.series,
        )
        for idx, (variant, weight) in enumerate(new.points):
            self.execute(
                "INSERT INTO bisection_point (bisection, idx, variant, weight) VALUES (:b, :idx,"
                " :v, :w)",
                b=number,
                idx=idx,
                v=variant.id,
                w=weight,
            )
        assert isinstance(number, int)
        return number

    def of_request(self, request_key: str) -> Bisection | None:
        return self._one("request_key = :key", key=request_key)

    def get(self, number: int) -> Bisection | None:
        return self._one("id = :id", id=number)

    def lock(self, number: int) -> None:
        self.scalar("SELECT id FROM bisection WHERE id = :id FOR UPDATE", id=number)

    def _one(self, where: str, **values: Any) -> Bisection | None:
        row = self.select_one(f"SELECT {BISECTION} FROM bisection WHERE {where}", **values)
        return _bisection(dict(row._mapping)) if row else None

    def status(self, number: int) -> BisectionStatus | None:
        return cast(
            BisectionStatus | None,
            self.scalar("SELECT status FROM bisection WHERE id = :id", id=number),
        )

    def running(self) -> list[int]:
        rows = self.select("SELECT id FROM bisection WHERE status = 'running' ORDER BY id")
        return [row.id for row in rows]

    def points(self, bisection: int) -> list[BisectionPoint]:
        rows = self.select(
            "SELECT v.id, v.tree, v.commit, v.subject, v.author, v.tree_hash, v.kconfig,"
            " v.compiler, v.layout, v.build_key, v.trust, v.voucher,"
            " p.weight, p.skipped, p.hint"
            " FROM bisection_point p JOIN variant v ON v.id = p.variant WHERE p.bisection = :b"
            " ORDER BY p.idx",
            b=bisection,
        )
        weights = hinted([(row.weight, row.hint) for row in rows])
        return [
            BisectionPoint(
                Variant(
                    **{
                        k: v
                        for k, v in row._mapping.items()
                        if k not in ("weight", "skipped", "hint")
                    }
                ),
                weight,
                row.skipped,
            )
            for row, weight in zip(rows, weights, strict=True)
        ]

    def wants(self, bisection: int) -> list[WantedBoot]:
        rows = self.select(
            "SELECT idx, k, phase, layout, testbox_index AS testbox FROM bisection_want"
            " WHERE bisection = :b ORDER BY asked_at, idx, k",
            b=bisection,
        )
        return records(WantedBoot, rows)

    def add_want(self, bisection: int, wanted: WantedBoot) -> None:
        self.execute(
            "INSERT INTO bisection_want (bisection, idx, k, phase, layout, testbox_index)"
            " VALUES (:b, :idx, :k, :phase, :layout, :testbox) ON CONFLICT DO NOTHING",
            b=bisection,
            **asdict(wanted),
        )

    def move_want(self, bisection: int, idx: int, k: int, testbox: int) -> None:
        self.execute(
            "UPDATE bisection_want w SET testbox_index = :testbox"
            " WHERE (bisection, idx, k) = (:b, :idx, :k) AND NOT EXISTS (SELECT FROM observation o"
            " WHERE (o.bisection, o.idx, o.k) = (w.bisection, w.idx, w.k))",
            b=bisection,
            idx=idx,
            k=k,
            testbox=testbox,
        )

    def set_testboxes(self, bisection: int, names: Sequence[str]) -> None:
        self.execute(
            "UPDATE bisection SET terms = terms || jsonb_build_object('testboxes',"
            " to_jsonb(CAST(:names AS text[]))) WHERE id = :b",
            b=bisection,
            names=list(names),
        )

    def observations(self, bisection: int) -> list[Observation]:
        rows = self.select(
            'SELECT o.idx, o.k, o."values" AS vals, o.skip, w.phase, w.layout,'
            " w.testbox_index AS testbox,"
            " extract(epoch FROM x.booted_at) AS at"
            " FROM observation o JOIN bisection_want w USING (bisection, idx, k) LEFT JOIN boot x"
            " ON x.id = o.boot WHERE o.bisection = :b ORDER BY o.idx, o.k",
            b=bisection,
        )
        return [
            Observation(
                idx=r.idx,
                k=r.k,
                values=tuple(r.vals),
                skip=r.skip,
                phase=r.phase,
                layout=r.layout,
                testbox=r.testbox,
                at=None if r.at is None else float(r.at),
            )
            for r in rows
        ]

    def add_observation(
        self,
        bisection: int,
        idx: int,
        k: int,
        boot: int | None,
        values: Sequence[float],
        skip: str | None,
    ) -> None:
        self.execute(
            'INSERT INTO observation (bisection, idx, k, boot, "values", skip) VALUES (:b, :idx,'
            " :k, :boot, :vals, :skip) ON CONFLICT DO NOTHING",
            b=bisection,
            idx=idx,
            k=k,
            boot=boot,
            vals=list(values),
            skip=skip,
        )

    def set_belief(self, bisection: int, belief: Mapping[str, Any]) -> None:
        self.execute(
            "UPDATE bisection SET belief = CAST(:belief AS jsonb) WHERE id = :id AND belief <>"
            " CAST(:belief AS jsonb)",
            id=bisection,
            belief=json.dumps(belief),
        )

    def conclude(
        self,
        bisection: int,
        status: BisectionEnd,
        conclusion: Mapping[str, Any],
        reason: str | None,
    ) -> None:
        self.execute(
            "UPDATE bisection SET status = :status, conclusion = CAST(:conclusion AS jsonb),"
            " reason = :reason, ended_at = clock_timestamp()"
            " WHERE id = :id AND status = 'running'",
            id=bisection,
            status=status,
            conclusion=json.dumps(conclusion),
            reason=reason,
        )

    def set_parent(self, bisection: int, parent: int, merged: str) -> None:
        self.execute(
            "UPDATE bisection SET parent = :p, merged = :m WHERE id = :b AND parent IS NULL",
            b=bisection,
            p=parent,
            m=merged,
        )

    def parent_of(self, bisection: int) -> tuple[int, str] | None:
        row = self.select_one(
            "SELECT parent, merged FROM bisection WHERE id = :b AND parent IS NOT NULL", b=bisection
        )
        return (row.parent, row.merged) if row else None

    def life_of(self, bisection: int) -> BisectionLife:
        row = self.select_one(
            "SELECT created_at, ended_at, reason FROM bisection WHERE id = :b", b=bisection
        )
        assert row is not None
        return BisectionLife(
            iso_time(row.created_at),
            None if row.ended_at is None else iso_time(row.ended_at),
            row.reason,
        )

    def branches_of(self, bisection: int) -> list[tuple[Bisection, str]]:
        rows = self.select(
            f"SELECT {BISECTION}, merged FROM bisection WHERE parent = :b ORDER BY id", b=bisection
        )
        return [
            (_bisection({k: v for k, v in row._mapping.items() if k != "merged"}), row.merged)
            for row in rows
        ]

    def conclusion(self, bisection: int) -> EndedSearch:
        conclusion = self.scalar("SELECT conclusion FROM bisection WHERE id = :b", b=bisection)
        assert isinstance(conclusion, dict)
        return EndedSearch.read(conclusion)


def _bisection(row: Mapping[str, Any]) -> Bisection:
    """A row of `BISECTION`."""
    terms = codec.typed(BisectionTerms, row["terms"], "terms")
    return Bisection(**{**row, "terms": terms})
