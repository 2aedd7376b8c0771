"""Variants, testboxes and what a boot runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swingbot.core.model.records import CommitFacts, Tree, Variant
from swingbot_db.store.rows import Rows
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.contract.unit_job import UnitJob, spec_sha256
from swingbot_jobs.testbox.box import Testbox

_VARIANT = (
    "id, tree, commit, subject, author, tree_hash, kconfig, compiler, layout, build_key, trust"
)


class KernelRows(Rows):
    def add_variant(
        self,
        tree: Tree,
        facts: CommitFacts,
        build_key: str,
        origin: str,
        layout: int = 0,
        trust: Trust = "trusted",
    ) -> Variant:
        self.do(
            "INSERT INTO variant (tree, commit, subject, author, tree_hash, kconfig, compiler, layout, build_key, origin, trust)"
            " VALUES (:tree, :commit, :subject, :author, :hash, :kconfig, :compiler, :layout, :key, :origin, :trust) ON CONFLICT DO NOTHING",
            tree=tree.id,
            commit=facts.commit,
            subject=facts.subject,
            author=facts.author,
            hash=facts.tree_hash,
            kconfig=tree.kconfig,
            compiler=tree.compiler,
            layout=layout,
            key=build_key,
            origin=origin,
            trust=trust,
        )
        row = self.first(
            f"SELECT {_VARIANT} FROM variant WHERE tree = :tree AND commit = :commit AND kconfig = :kconfig AND compiler = :compiler AND layout = :layout"
            " AND trust = :trust",
            tree=tree.id,
            commit=facts.commit,
            kconfig=tree.kconfig,
            compiler=tree.compiler,
            layout=layout,
            trust=trust,
        )
        assert row is not None
        return Variant(**row._mapping)

    def variant(self, number: int) -> Variant:
        row = self.first(f"SELECT {_VARIANT} FROM variant WHERE id = :id", id=number)
        assert row is not None
        return Variant(**row._mapping)

    def is_trusted(self, tree: int, commit: str) -> bool:
        """Whether somebody who may say so said that `commit` of `tree` is to be trusted."""
        return bool(
            self.value(
                "SELECT EXISTS (SELECT FROM variant WHERE tree = :tree AND commit = :commit AND trust = 'trusted')",
                tree=tree,
                commit=commit,
            )
        )

    def untrusted_boots(self) -> set[int]:
        """Orders for boots of kernels that are not trusted and are to be handed out."""
        return {
            row.id
            for row in self.all(
                "SELECT o.id FROM orders o JOIN variant v ON v.id = o.variant WHERE o.kind = 'boot' AND o.state = 'ready' AND v.trust = 'untrusted'"
            )
        }

    def sync_testboxes(self, boxes: Iterable[tuple[Testbox, Mapping[str, Any]]]) -> None:
        """Make the table agree with the files: new boxes appear, changed facts are noted, boxes without a file are gone."""
        names = []
        for box, facts in boxes:
            names.append(box.name)
            self.do(
                "INSERT INTO testbox (name, tbox_group, facts) VALUES (:name, :grp, CAST(:facts AS jsonb)) ON CONFLICT (name) DO UPDATE SET"
                " tbox_group = excluded.tbox_group, facts = excluded.facts, updated_at = clock_timestamp(),"
                " state = CASE testbox.state WHEN 'gone' THEN 'active' ELSE testbox.state END"
                " WHERE (testbox.tbox_group, testbox.facts) IS DISTINCT FROM (excluded.tbox_group, excluded.facts) OR testbox.state = 'gone'",
                name=box.name,
                grp=box.tbox_group,
                facts=json.dumps(facts),
            )
        self.do(
            "UPDATE testbox SET state = 'gone', updated_at = clock_timestamp() WHERE NOT name = ANY(:names) AND state <> 'gone'",
            names=names,
        )

    def testbox_states(self) -> dict[str, str]:
        return {row.name: row.state for row in self.all("SELECT name, state FROM testbox")}

    def add_spec(self, unit_jobs: Sequence[UnitJob]) -> str:
        sha256 = spec_sha256(unit_jobs)
        self.do(
            "INSERT INTO boot_spec (sha256, unit_jobs) VALUES (:sha, CAST(:jobs AS jsonb)) ON CONFLICT DO NOTHING",
            sha=sha256,
            jobs=json.dumps([job.to_json() for job in unit_jobs]),
        )
        return sha256

    def spec(self, sha256: str) -> list[UnitJob]:
        return [
            UnitJob.from_json(job)
            for job in self.value("SELECT unit_jobs FROM boot_spec WHERE sha256 = :sha", sha=sha256)
        ]
