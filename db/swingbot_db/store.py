"""The memory of the brain: what the use cases in `swingbot.service` read and record, on one open transaction."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from swingbot.core.model.records import (
    Attempt,
    Bisection,
    BootKey,
    BootRecord,
    Change,
    CommitFacts,
    Comparison,
    JobFile,
    KernelBuild,
    Order,
    Swing,
    Tree,
    Variant,
)
from swingbot_db import reports
from swingbot_jobs.testbox import Testbox
from swingbot_jobs.unit_job import UnitJob, spec_sha256

T = TypeVar("T")
_ORDER = "id, kind, key, build_key, variant, testbox, spec, series, k, state, reason, priority, budget"
_VARIANT = "id, tree, commit, subject, author, tree_hash, kconfig, compiler, layout, build_key"
_TREE = "id, name, url, branch, base_commit, tip_commit, job_files, testboxes, paths, kconfig, compiler"
_BISECTION = "id, tree, origin, good, bad, testbox, spec, series, unit_job, metric, policy, status"


class PgStore:
    """`swingbot.service.ports.Store` on PostgreSQL; lives as long as its transaction."""

    def __init__(self, conn: sa.Connection) -> None:
        self.conn = conn

    # -- small tools

    def _all(self, sql: str, **values: Any) -> Sequence[sa.Row[Any]]:
        return self.conn.execute(sa.text(sql), values).all()

    def _first(self, sql: str, **values: Any) -> sa.Row[Any] | None:
        return self.conn.execute(sa.text(sql), values).first()

    def _value(self, sql: str, **values: Any) -> Any:
        return self.conn.execute(sa.text(sql), values).scalar()

    def _do(self, sql: str, **values: Any) -> int:
        return self.conn.execute(sa.text(sql), values).rowcount

    # -- trees and changes

    def add_tree(self, tree: Tree) -> Tree:
        number = self._value(
            "INSERT INTO tree (name, url, branch, base_commit, job_files, testboxes, paths, kconfig, compiler)"
            " VALUES (:name, :url, :branch, :base, CAST(:files AS jsonb), :boxes, :paths, :kconfig, :compiler) RETURNING id",
            name=tree.name,
            url=tree.url,
            branch=tree.branch,
            base=tree.base_commit,
            files=json.dumps([dataclasses.asdict(file) for file in tree.job_files]),
            boxes=list(tree.testboxes),
            paths=list(tree.paths),
            kconfig=tree.kconfig,
            compiler=tree.compiler,
        )
        return dataclasses.replace(tree, id=number)

    def trees(self) -> list[Tree]:
        return [_tree(row) for row in self._all(f"SELECT {_TREE} FROM tree WHERE state = 'watched' ORDER BY id")]

    def tree(self, name: str) -> Tree | None:
        row = self._first(f"SELECT {_TREE} FROM tree WHERE name = :name AND state = 'watched'", name=name)
        return _tree(row) if row else None

    def tree_by_id(self, number: int) -> Tree:
        row = self._first(f"SELECT {_TREE} FROM tree WHERE id = :id", id=number)
        assert row is not None
        return _tree(row)

    def remove_tree(self, number: int) -> None:
        self._do("UPDATE tree SET state = 'removed' WHERE id = :id", id=number)

    def note_poll(self, number: int, problem: str | None) -> None:
        self._do("UPDATE tree SET polled_at = clock_timestamp(), problem = :problem WHERE id = :id", id=number, problem=problem)

    def add_change(self, tree: int, kind: str, old: str, new: str) -> None:
        self._do(
            "INSERT INTO change (tree, kind, old_commit, new_commit) VALUES (:tree, :kind, :old, :new) ON CONFLICT DO NOTHING",
            tree=tree,
            kind=kind,
            old=old,
            new=new,
        )
        self._do("UPDATE tree SET tip_commit = :new WHERE id = :tree", tree=tree, new=new)

    def changes_to_compare(self) -> list[Change]:
        rows = self._all(
            "SELECT id, tree, kind, old_commit, new_commit FROM change c WHERE NOT EXISTS (SELECT FROM comparison WHERE change = c.id)"
            " AND EXISTS (SELECT FROM tree WHERE id = c.tree AND state = 'watched') ORDER BY id"
        )
        return [Change(**row._mapping) for row in rows]

    # -- variants, testboxes, specs

    def add_variant(self, tree: Tree, facts: CommitFacts, build_key: str, origin: str) -> Variant:
        self._do(
            "INSERT INTO variant (tree, commit, subject, author, tree_hash, kconfig, compiler, build_key, origin)"
            " VALUES (:tree, :commit, :subject, :author, :hash, :kconfig, :compiler, :key, :origin) ON CONFLICT DO NOTHING",
            tree=tree.id,
            commit=facts.commit,
            subject=facts.subject,
            author=facts.author,
            hash=facts.tree_hash,
            kconfig=tree.kconfig,
            compiler=tree.compiler,
            key=build_key,
            origin=origin,
        )
        row = self._first(
            f"SELECT {_VARIANT} FROM variant WHERE tree = :tree AND commit = :commit AND kconfig = :kconfig AND compiler = :compiler AND layout = 0",
            tree=tree.id,
            commit=facts.commit,
            kconfig=tree.kconfig,
            compiler=tree.compiler,
        )
        assert row is not None
        return Variant(**row._mapping)

    def variant(self, number: int) -> Variant:
        row = self._first(f"SELECT {_VARIANT} FROM variant WHERE id = :id", id=number)
        assert row is not None
        return Variant(**row._mapping)

    def sync_testboxes(self, boxes: Iterable[tuple[Testbox, Mapping[str, Any]]]) -> None:
        """Make the table agree with the files: new boxes appear, changed facts are noted, boxes without a file are gone."""
        names = []
        for box, facts in boxes:
            names.append(box.name)
            self._do(
                "INSERT INTO testbox (name, tbox_group, facts) VALUES (:name, :grp, CAST(:facts AS jsonb)) ON CONFLICT (name) DO UPDATE SET"
                " tbox_group = excluded.tbox_group, facts = excluded.facts, updated_at = clock_timestamp(),"
                " state = CASE testbox.state WHEN 'gone' THEN 'active' ELSE testbox.state END"
                " WHERE (testbox.tbox_group, testbox.facts) IS DISTINCT FROM (excluded.tbox_group, excluded.facts) OR testbox.state = 'gone'",
                name=box.name,
                grp=box.tbox_group,
                facts=json.dumps(facts),
            )
        self._do("UPDATE testbox SET state = 'gone', updated_at = clock_timestamp() WHERE NOT name = ANY(:names) AND state <> 'gone'", names=names)

    def testbox_states(self) -> dict[str, str]:
        return {row.name: row.state for row in self._all("SELECT name, state FROM testbox")}

    def add_spec(self, unit_jobs: Sequence[UnitJob]) -> str:
        sha256 = spec_sha256(unit_jobs)
        self._do(
            "INSERT INTO boot_spec (sha256, unit_jobs) VALUES (:sha, CAST(:jobs AS jsonb)) ON CONFLICT DO NOTHING",
            sha=sha256,
            jobs=json.dumps([job.to_json() for job in unit_jobs]),
        )
        return sha256

    def spec(self, sha256: str) -> list[UnitJob]:
        return [UnitJob.from_json(job) for job in self._value("SELECT unit_jobs FROM boot_spec WHERE sha256 = :sha", sha=sha256)]

    # -- comparisons and swings

    def add_comparison(
        self,
        *,
        kind: str,
        tree: int,
        base: int,
        head: int,
        boots: int,
        parts: Iterable[tuple[str, str]],
        change: int | None = None,
        first_k: int = 0,
        request_key: str | None = None,
    ) -> int:
        """Record the intent to compare; the same request key or change gives the same comparison again."""
        number = self._value(
            "INSERT INTO comparison (kind, tree, change, base, head, first_k, boots, request_key)"
            " VALUES (:kind, :tree, :change, :base, :head, :first_k, :boots, :key) ON CONFLICT DO NOTHING RETURNING id",
            kind=kind,
            tree=tree,
            change=change,
            base=base,
            head=head,
            first_k=first_k,
            boots=boots,
            key=request_key,
        )
        if number is None:
            found = self._value("SELECT id FROM comparison WHERE request_key = :key OR change = :change", key=request_key, change=change)
            assert isinstance(found, int)
            return found
        for testbox, spec in parts:
            self._do(
                "INSERT INTO comparison_part (comparison, testbox, spec) VALUES (:id, :box, :spec) ON CONFLICT DO NOTHING",
                id=number,
                box=testbox,
                spec=spec,
            )
        assert isinstance(number, int)
        return number

    def comparison(self, number: int) -> Comparison | None:
        found = self._comparisons("c.id = :id", id=number)
        return found[0] if found else None

    def open_comparisons(self) -> list[Comparison]:
        return self._comparisons("c.status IN ('waiting', 'running')")

    def comparison_of_request(self, request_key: str) -> Comparison | None:
        found = self._comparisons("c.request_key = :key", key=request_key)
        return found[0] if found else None

    def _comparisons(self, where: str, **values: Any) -> list[Comparison]:
        rows = self._all(
            "SELECT c.id, kind, tree, base, head, first_k, boots, status, COALESCE((SELECT"
            " jsonb_agg(jsonb_build_array(testbox, spec) ORDER BY testbox, spec) FROM comparison_part p WHERE p.comparison = c.id), '[]') AS parts"
            f" FROM comparison c WHERE {where} ORDER BY c.id",
            **values,
        )
        return [Comparison(**{**row._mapping, "parts": tuple((box, spec) for box, spec in row.parts)}) for row in rows]

    def set_comparison(self, number: int, status: str, reason: str | None = None) -> None:
        self._do(
            "UPDATE comparison SET status = :status, reason = :reason,"
            " ended_at = CASE WHEN :over THEN clock_timestamp() END WHERE id = :id AND status NOT IN ('done', 'failed', 'cancelled')"
            " AND (status, reason) IS DISTINCT FROM (:status, :reason)",
            id=number,
            status=status,
            reason=reason,
            over=status in ("done", "failed", "cancelled"),
        )

    def add_row(self, comparison: int, testbox: str, spec: str, detail: Mapping[str, Any]) -> None:
        self._do(
            "INSERT INTO comparison_row (comparison, testbox, spec, unit_job, metric, verdict, change_pct, detail)"
            " VALUES (:id, :box, :spec, :job, :metric, :verdict, :pct, CAST(:detail AS jsonb)) ON CONFLICT DO NOTHING",
            id=comparison,
            box=testbox,
            spec=spec,
            job=detail["unit_job"],
            metric=detail["metric"],
            verdict=detail["verdict"],
            pct=detail["change_pct"],
            detail=json.dumps(detail),
        )

    def rows(self, comparison: int) -> list[dict[str, Any]]:
        """The rows of a comparison as DESIGN section 8 words them, each with its `spec` added."""
        rows = self._all("SELECT spec, detail FROM comparison_row WHERE comparison = :id ORDER BY testbox, unit_job, metric", id=comparison)
        return [{**row.detail, "spec": row.spec} for row in rows]

    def add_swing(self, comparison: int, testbox: str, unit_job: str, metric: str, direction: str, change_pct: float, state: str) -> None:
        self._do(
            "INSERT INTO swing (comparison, testbox, unit_job, metric, direction, change_pct, state)"
            " VALUES (:c, :box, :job, :metric, :direction, :pct, :state) ON CONFLICT DO NOTHING",
            c=comparison,
            box=testbox,
            job=unit_job,
            metric=metric,
            direction=direction,
            pct=change_pct,
            state=state,
        )

    def swings(self, *states: str) -> list[Swing]:
        rows = self._all(
            "SELECT id, comparison, testbox, unit_job, metric, direction, change_pct, state, bisection FROM swing WHERE state = ANY(:states) ORDER BY id",
            states=list(states),
        )
        return [Swing(**row._mapping) for row in rows]

    def set_swing(self, number: int, state: str, bisection: int | None = None) -> None:
        self._do("UPDATE swing SET state = :state, bisection = COALESCE(:b, bisection) WHERE id = :id", id=number, state=state, b=bisection)

    # -- orders

    def ensure_build(self, variant: Variant, priority: int) -> Order:
        return self._ensure_order("build", f"build:{variant.build_key}", variant, None, priority)

    def ensure_boot(self, key: BootKey, variant: Variant, priority: int) -> Order:
        return self._ensure_order("boot", str(key), variant, key, priority)

    def _ensure_order(self, kind: str, key: str, variant: Variant, boot: BootKey | None, priority: int) -> Order:
        """One order per key. A second asker raises its priority; one that was cancelled or failed is tried again with a fresh budget."""
        row = self._first(
            "INSERT INTO orders AS o (kind, key, build_key, variant, testbox, spec, series, k, priority)"
            " VALUES (:kind, :key, :build_key, :variant, :box, :spec, :series, :k, :priority)"
            " ON CONFLICT (key) DO UPDATE SET priority = GREATEST(o.priority, excluded.priority),"
            "  budget = CASE WHEN o.state = 'failed' THEN o.budget + 3 ELSE o.budget END,"
            "  reason = CASE WHEN o.state IN ('cancelled', 'failed') THEN NULL ELSE o.reason END,"
            "  ended_at = CASE WHEN o.state IN ('cancelled', 'failed') THEN NULL ELSE o.ended_at END,"
            "  state = CASE WHEN o.state IN ('cancelled', 'failed') THEN 'waiting' ELSE o.state END"
            f" RETURNING {_ORDER}",
            kind=kind,
            key=key,
            build_key=variant.build_key,
            variant=variant.id,
            box=boot.testbox if boot else None,
            spec=boot.spec if boot else None,
            series=boot.series if boot else None,
            k=boot.k if boot else None,
            priority=priority,
        )
        assert row is not None
        return Order(**row._mapping)

    def want(self, order: int, *, comparison: int | None = None, bisection: int | None = None) -> None:
        self._do(
            "INSERT INTO want (order_id, comparison, bisection) VALUES (:o, :c, :b) ON CONFLICT DO NOTHING",
            o=order,
            c=comparison,
            b=bisection,
        )

    def wanted(self, *, comparison: int | None = None, bisection: int | None = None) -> list[Order]:
        rows = self._all(
            f"SELECT {_ORDER} FROM orders WHERE id IN (SELECT order_id FROM want WHERE comparison = :c OR bisection = :b) ORDER BY id",
            c=comparison,
            b=bisection,
        )
        return [Order(**row._mapping) for row in rows]

    def order(self, number: int) -> Order | None:
        row = self._first(f"SELECT {_ORDER} FROM orders WHERE id = :id", id=number)
        return Order(**row._mapping) if row else None

    def open_orders(self) -> list[Order]:
        rows = self._all(f"SELECT {_ORDER} FROM orders WHERE state IN ('waiting', 'ready', 'running') ORDER BY priority DESC, id")
        return [Order(**row._mapping) for row in rows]

    def set_order(self, number: int, state: str, reason: str | None = None) -> None:
        self._do(
            "UPDATE orders SET state = :state, reason = :reason, ended_at = CASE WHEN :over THEN clock_timestamp() END WHERE id = :id",
            id=number,
            state=state,
            reason=reason,
            over=state in ("done", "failed", "cancelled"),
        )

    def orders_that_failed(self, kind: str, build_keys: Iterable[str]) -> list[Order]:
        rows = self._all(f"SELECT {_ORDER} FROM orders WHERE state = 'failed' AND kind = :kind AND build_key = ANY(:keys)", kind=kind, keys=list(build_keys))
        return [Order(**row._mapping) for row in rows]

    def unwanted_orders(self) -> list[Order]:
        """Open orders that no comparison or bisection under way wants any more."""
        rows = self._all(
            f"SELECT {_ORDER} FROM orders o WHERE state IN ('waiting', 'ready', 'running') AND NOT EXISTS (SELECT FROM want w"
            " LEFT JOIN comparison c ON c.id = w.comparison LEFT JOIN bisection b ON b.id = w.bisection"
            " WHERE w.order_id = o.id AND (c.status IN ('waiting', 'running') OR b.status = 'running'))"
        )
        return [Order(**row._mapping) for row in rows]

    # -- attempts, dispatches, leases

    def attempts(self, state: str, *, ingested: bool | None = None) -> list[Attempt]:
        rows = self._all(
            "SELECT a.id, a.order_id, a.number, a.state, a.outcome, extract(epoch FROM clock_timestamp() - a.created_at)::float AS age_seconds,"
            " COALESCE(d.number, 0) AS dispatch_number, d.state AS dispatch_state, d.result AS dispatch_result FROM attempt a"
            " LEFT JOIN LATERAL (SELECT number, state, result FROM dispatch WHERE attempt = a.id ORDER BY number DESC LIMIT 1) d ON true"
            " WHERE a.state = :state AND (CAST(:ingested AS boolean) IS NULL OR (a.ingested_at IS NOT NULL) = :ingested) ORDER BY a.id",
            state=state,
            ingested=ingested,
        )
        return [Attempt(**row._mapping) for row in rows]

    def attempts_made(self, order: int) -> tuple[int, float, str | None]:
        """How many attempts an order has had, seconds since the last one ended, and why that one failed."""
        row = self._first(
            "SELECT count(*) AS n, COALESCE(extract(epoch FROM clock_timestamp() - max(ended_at)), 1e9)::float AS ago,"
            " (array_agg(COALESCE(reason, outcome ->> 'reason') ORDER BY number DESC))[1] AS reason FROM attempt WHERE order_id = :id",
            id=order,
        )
        assert row is not None
        return row.n, row.ago, row.reason

    def add_attempt(self, order: int, number: int) -> int:
        found = self._value("INSERT INTO attempt (order_id, number) VALUES (:o, :n) RETURNING id", o=order, n=number)
        assert isinstance(found, int)
        return found

    def add_dispatch(self, order: int, attempt: int, attempt_number: int, number: int, builder: str) -> None:
        self._do(
            "INSERT INTO dispatch (attempt, number, builder, external_id) VALUES (:a, :n, :builder, :external)",
            a=attempt,
            n=number,
            builder=builder,
            external=f"o{order}/a{attempt_number}/d{number}",
        )

    def open_dispatches(self) -> dict[str, int]:
        """How many dispatches each builder has that are not over."""
        return {row.builder: row.n for row in self._all("SELECT builder, count(*) AS n FROM dispatch WHERE state <> 'over' GROUP BY builder")}

    def bury_attempt(self, number: int, reason: str) -> None:
        self._do(
            "UPDATE attempt SET state = 'dead', reason = :reason, ended_at = clock_timestamp() WHERE id = :id AND state = 'running'", id=number, reason=reason
        )
        self.release_lease(number)

    def mark_ingested(self, number: int) -> bool:
        """True for the one caller that may ingest this attempt's outcome."""
        return self._do("UPDATE attempt SET ingested_at = clock_timestamp() WHERE id = :id AND ingested_at IS NULL", id=number) == 1

    def take_lease(self, testbox: str, attempt: int) -> bool:
        return self._do("INSERT INTO lease (testbox, attempt) VALUES (:box, :a) ON CONFLICT (testbox) DO NOTHING", box=testbox, a=attempt) == 1

    def leased(self) -> set[str]:
        return {row.testbox for row in self._all("SELECT testbox FROM lease")}

    def release_lease(self, attempt: int) -> None:
        self._do("DELETE FROM lease WHERE attempt = :a", a=attempt)

    # -- kernel builds, boots, samples

    def kernel_builds(self, build_keys: Iterable[str]) -> dict[str, KernelBuild]:
        rows = self._all(
            "SELECT build_key, status, image_sha256, errors, seconds, cached, compiler_version, files -> 'config' ->> 'sha256' AS config_sha256"
            " FROM kernel_build WHERE build_key = ANY(:keys)",
            keys=list(build_keys),
        )
        return {row.build_key: KernelBuild(**{**row._mapping, "errors": tuple(row.errors)}) for row in rows}

    def add_kernel_build(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        build = outcome["kernel_build"]
        self._do(
            "INSERT INTO kernel_build (build_key, status, image_sha256, compiler_version, sizes, errors, files, seconds, cached, attempt, origin)"
            " VALUES (:key, :status, :image, :compiler, CAST(:sizes AS jsonb), :errors, CAST(:files AS jsonb), :seconds, :cached, :attempt, :origin)"
            " ON CONFLICT DO NOTHING",
            key=build["build_key"],
            status=outcome["status"],
            image=build.get("image_sha256") if outcome["status"] == "built" else None,
            compiler=build["compiler_version"],
            sizes=json.dumps(build.get("sizes", {})),
            errors=[*build.get("errors", ())] or ([outcome["reason"]] if outcome.get("reason") else []),
            files=json.dumps(outcome["files"]),
            seconds=outcome["seconds"],
            cached=build["cached"],
            attempt=attempt,
            origin=outcome.get("origin", "measured"),
        )

    def add_boot(self, attempt: int, order: Order, image: str, outcome: Mapping[str, Any]) -> int | None:
        """Remember a boot; None if the same boot (image, testbox, spec, series, k) is known already."""
        found = self._value(
            "INSERT INTO boot (attempt, order_id, testbox, build_key, image_sha256, spec, series, k, outcome, reason, facts, files, seconds, origin)"
            " VALUES (:attempt, :order, :box, :key, :image, :spec, :series, :k, :outcome, :reason,"
            " CAST(:facts AS jsonb), CAST(:files AS jsonb), :seconds, :origin)"
            " ON CONFLICT DO NOTHING RETURNING id",
            attempt=attempt,
            order=order.id,
            box=order.testbox,
            key=order.build_key,
            image=image,
            spec=order.spec,
            series=order.series,
            k=order.k,
            outcome=outcome["status"],
            reason=outcome.get("reason"),
            facts=json.dumps(outcome.get("facts", {})),
            files=json.dumps(outcome["files"]),
            seconds=outcome["seconds"],
            origin=outcome.get("origin", "measured"),
        )
        assert found is None or isinstance(found, int)
        return found

    def add_run(
        self, boot: int, unit_job: str, number: int, status: str, reason: str | None, seconds: float | None, samples: Mapping[str, Sequence[float]]
    ) -> None:
        run = self._value(
            "INSERT INTO run (boot, unit_job, number, status, reason, seconds) VALUES (:boot, :job, :number, :status, :reason, :seconds) RETURNING id",
            boot=boot,
            job=unit_job,
            number=number,
            status=status,
            reason=reason,
            seconds=seconds,
        )
        rows = [{"run": run, "metric": metric, "seq": seq, "value": value} for metric, values in samples.items() for seq, value in enumerate(values)]
        if rows:
            self.conn.execute(sa.text("INSERT INTO sample (run, metric, seq, value) VALUES (:run, :metric, :seq, :value)"), rows)

    def boots(self, image: str, testbox: str, spec: str, series: str, ks: Iterable[int]) -> list[BootRecord]:
        rows = self._all(
            "SELECT id, k, outcome, reason, seconds FROM boot WHERE image_sha256 = :image AND testbox = :box AND spec = :spec AND series = :series"
            " AND k = ANY(:ks) ORDER BY k",
            image=image,
            box=testbox,
            spec=spec,
            series=series,
            ks=list(ks),
        )
        return [BootRecord(**row._mapping) for row in rows]

    def boot_values(self, boot: int) -> dict[tuple[str, str], list[float]]:
        """Values of the boot's good runs: {(unit job, metric): one value a run}, the mean where a run gave several."""
        rows = self._all(
            "SELECT r.unit_job, s.metric, avg(s.value) AS value FROM run r JOIN sample s ON s.run = r.id WHERE r.boot = :boot AND r.status = 'ok'"
            " GROUP BY r.unit_job, s.metric, r.number ORDER BY r.unit_job, s.metric, r.number",
            boot=boot,
        )
        values: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            values.setdefault((row.unit_job, row.metric), []).append(row.value)
        return values

    def run_problems(self, boot: int, unit_job: str) -> list[str]:
        return [
            row.reason
            for row in self._all("SELECT reason FROM run WHERE boot = :boot AND unit_job = :job AND status <> 'ok' ORDER BY number", boot=boot, job=unit_job)
        ]

    def usual_seconds(self) -> tuple[float | None, float | None]:
        """Median seconds of the last real builds and boots, for costs and estimates."""
        return (
            self._value(
                "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds)"
                " FROM (SELECT seconds FROM kernel_build WHERE NOT cached ORDER BY built_at DESC LIMIT 20) x"
            ),
            self._value("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM (SELECT seconds FROM boot ORDER BY id DESC LIMIT 20) x"),
        )

    # -- bisections

    def add_bisection(
        self,
        *,
        tree: int,
        origin: str,
        good: str,
        bad: str,
        testbox: str,
        spec: str,
        series: str | None,
        unit_job: str,
        metric: str,
        policy: Mapping[str, Any],
        points: Sequence[tuple[Variant, float]],
        request_key: str,
    ) -> int:
        """Record a bisection and its points; the same request key gives the same bisection again. `series` None: its own."""
        number = self._value(
            "INSERT INTO bisection (tree, origin, good, bad, testbox, spec, series, unit_job, metric, policy, request_key)"
            " VALUES (:tree, :origin, :good, :bad, :box, :spec, '', :job, :metric, CAST(:policy AS jsonb), :key) ON CONFLICT DO NOTHING RETURNING id",
            tree=tree,
            origin=origin,
            good=good,
            bad=bad,
            box=testbox,
            spec=spec,
            job=unit_job,
            metric=metric,
            policy=json.dumps(policy),
            key=request_key,
        )
        if number is None:
            found = self._value("SELECT id FROM bisection WHERE request_key = :key", key=request_key)
            assert isinstance(found, int)
            return found
        self._do("UPDATE bisection SET series = :series WHERE id = :id", id=number, series=f"b{number}" if series is None else series)
        for idx, (variant, weight) in enumerate(points):
            self._do(
                "INSERT INTO bisection_point (bisection, idx, variant, weight) VALUES (:b, :idx, :v, :w)",
                b=number,
                idx=idx,
                v=variant.id,
                w=weight,
            )
        assert isinstance(number, int)
        return number

    def bisection(self, number: int) -> Bisection | None:
        row = self._first(f"SELECT {_BISECTION} FROM bisection WHERE id = :id", id=number)
        return Bisection(**row._mapping) if row else None

    def running_bisections(self) -> list[Bisection]:
        return [Bisection(**row._mapping) for row in self._all(f"SELECT {_BISECTION} FROM bisection WHERE status = 'running' ORDER BY id")]

    def points(self, bisection: int) -> list[tuple[Variant, float, str | None]]:
        """(variant, prior weight, why a person said to skip it) by index."""
        rows = self._all(
            "SELECT v.id, v.tree, v.commit, v.subject, v.author, v.tree_hash, v.kconfig, v.compiler, v.layout, v.build_key, p.weight, p.skipped"
            " FROM bisection_point p JOIN variant v ON v.id = p.variant WHERE p.bisection = :b ORDER BY p.idx",
            b=bisection,
        )
        return [(Variant(**{k: v for k, v in row._mapping.items() if k not in ("weight", "skipped")}), row.weight, row.skipped) for row in rows]

    def wants(self, bisection: int) -> list[tuple[int, int, str]]:
        """(point, k, phase) of everything this bisection asked for."""
        return [
            (row.idx, row.k, row.phase)
            for row in self._all("SELECT idx, k, phase FROM bisection_want WHERE bisection = :b ORDER BY asked_at, idx, k", b=bisection)
        ]

    def add_want(self, bisection: int, idx: int, k: int, phase: str) -> None:
        self._do(
            "INSERT INTO bisection_want (bisection, idx, k, phase) VALUES (:b, :idx, :k, :phase) ON CONFLICT DO NOTHING", b=bisection, idx=idx, k=k, phase=phase
        )

    def observations(self, bisection: int) -> list[tuple[int, int, tuple[float, ...], str | None, str]]:
        """(point, k, values, skip, phase) of all that was learned."""
        rows = self._all(
            'SELECT idx, k, o."values" AS vals, o.skip, w.phase FROM observation o JOIN bisection_want w USING (bisection, idx, k)'
            " WHERE bisection = :b ORDER BY idx, k",
            b=bisection,
        )
        return [(row.idx, row.k, tuple(row.vals), row.skip, row.phase) for row in rows]

    def add_observation(self, bisection: int, idx: int, k: int, boot: int | None, values: Sequence[float], skip: str | None) -> None:
        self._do(
            'INSERT INTO observation (bisection, idx, k, boot, "values", skip) VALUES (:b, :idx, :k, :boot, :vals, :skip) ON CONFLICT DO NOTHING',
            b=bisection,
            idx=idx,
            k=k,
            boot=boot,
            vals=list(values),
            skip=skip,
        )

    def set_belief(self, bisection: int, belief: Mapping[str, Any]) -> None:
        self._do(
            "UPDATE bisection SET belief = CAST(:belief AS jsonb) WHERE id = :id AND belief <> CAST(:belief AS jsonb)", id=bisection, belief=json.dumps(belief)
        )

    def conclude(self, bisection: int, status: str, conclusion: Mapping[str, Any], reason: str | None) -> None:
        self._do(
            "UPDATE bisection SET status = :status, conclusion = CAST(:conclusion AS jsonb), reason = :reason, ended_at = clock_timestamp()"
            " WHERE id = :id AND status = 'running'",
            id=bisection,
            status=status,
            conclusion=json.dumps(conclusion),
            reason=reason,
        )

    # -- incidents and reports

    def add_incident(self, tree: int, culprit: int, bisection: int) -> int:
        self._do("INSERT INTO incident (tree, culprit) VALUES (:tree, :culprit) ON CONFLICT DO NOTHING", tree=tree, culprit=culprit)
        number = self._value("SELECT id FROM incident WHERE tree = :tree AND culprit = :culprit", tree=tree, culprit=culprit)
        self._do("INSERT INTO incident_bisection (incident, bisection) VALUES (:i, :b) ON CONFLICT DO NOTHING", i=number, b=bisection)
        assert isinstance(number, int)
        return number

    def set_incident_comparison(self, incident: int, comparison: int) -> None:
        self._do("UPDATE incident SET comparison = :c WHERE id = :i AND comparison IS NULL", i=incident, c=comparison)

    def incidents_to_attribute(self) -> list[tuple[int, int, int, int]]:
        """(incident, tree, culprit variant, bisection) of incidents found by watching that have no comparison of parent and culprit yet."""
        rows = self._all(
            "SELECT i.id, i.tree, i.culprit, min(ib.bisection) AS bisection FROM incident i JOIN incident_bisection ib ON ib.incident = i.id"
            " JOIN bisection b ON b.id = ib.bisection AND b.origin = 'watch' WHERE i.comparison IS NULL AND i.status = 'open' GROUP BY i.id ORDER BY i.id"
        )
        return [(row.id, row.tree, row.culprit, row.bisection) for row in rows]

    def comparisons_being_attributed(self) -> list[int]:
        """Comparisons whose swing led to a culprit that is not yet measured against its parent: their other swings wait for that."""
        rows = self._all(
            "SELECT DISTINCT s.comparison FROM swing s JOIN incident_bisection ib ON ib.bisection = s.bisection JOIN incident i ON i.id = ib.incident"
            " LEFT JOIN comparison c ON c.id = i.comparison WHERE i.status = 'open' AND (c.id IS NULL OR c.status IN ('waiting', 'running'))"
        )
        return [row.comparison for row in rows]

    def incidents_to_report(self) -> list[tuple[int, int]]:
        """(incident, comparison) of open incidents whose comparison is over and that have no report."""
        rows = self._all(
            "SELECT i.id, i.comparison FROM incident i JOIN comparison c ON c.id = i.comparison AND c.status IN ('done', 'failed')"
            " WHERE i.status = 'open' AND NOT EXISTS (SELECT FROM report WHERE incident = i.id) ORDER BY i.id"
        )
        return [(row.id, row.comparison) for row in rows]

    def bisections_of_incident(self, incident: int) -> list[int]:
        return [row.bisection for row in self._all("SELECT bisection FROM incident_bisection WHERE incident = :i ORDER BY bisection", i=incident)]

    def culprit_of_incident(self, incident: int) -> Variant:
        return self.variant(self._value("SELECT culprit FROM incident WHERE id = :i", i=incident))

    def conclusion(self, bisection: int) -> dict[str, Any]:
        found = self._value("SELECT conclusion FROM bisection WHERE id = :b", b=bisection)
        assert isinstance(found, dict)
        return found

    def swings_of_bisection(self, bisection: int) -> list[Swing]:
        return [swing for swing in self.swings("open", "bisecting", "explained", "noted", "not_found") if swing.bisection == bisection]

    def boot_facts(self, image: str, testbox: str) -> dict[str, Any]:
        found = self._value(
            "SELECT facts FROM boot WHERE image_sha256 = :image AND testbox = :box AND outcome = 'up' ORDER BY id DESC LIMIT 1", image=image, box=testbox
        )
        return dict(found or {})

    def reserve_report(self) -> int:
        """The number of a report that is about to be written; its mail names it."""
        return reports.reserve_report_id(self.conn)

    def add_report(
        self,
        *,
        number: int,
        incident: int,
        kind: str,
        revision: int,
        message_id: str,
        to: Sequence[str],
        subject: str,
        body: str,
        message: bytes,
        state: str,
    ) -> int:
        return reports.add_report(
            self.conn,
            id=number,
            incident=incident,
            kind=kind,
            revision=revision,
            message_id=message_id,
            to=to,
            cc=(),
            subject=subject,
            body=body,
            message=message,
            state=state,
        )


def _tree(row: sa.Row[Any]) -> Tree:
    return Tree(
        **{
            **row._mapping,
            "job_files": tuple(JobFile(**file) for file in row.job_files),
            "testboxes": tuple(row.testboxes),
            "paths": tuple(row.paths),
        }
    )
