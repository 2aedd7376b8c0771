"""Variants: one kernel to measure each."""

from __future__ import annotations

import json

from swingbot.core.model.records import (
    CommitFacts,
    Tree,
    Variant,
)
from swingbot.core.model.statuses import VariantOrigin
from swingbot_db.store.rows import Rows
from swingbot_jobs.contract.trust import Trust

_VARIANT = (
    "id, tree, commit, subject, author, tree_hash, kconfig, compiler, layout, build_key, trust"
)


class Variants(Rows):
    def add(
        self,
        tree: Tree,
        facts: CommitFacts,
        build_key: str,
        origin: VariantOrigin,
        layout: int = 0,
        trust: Trust = "trusted",
    ) -> Variant:
        self.execute(
            "INSERT INTO variant (tree, commit, subject, author, tree_hash, kconfig, compiler,"
            " layout, build_key, origin, trust, posted, patches)"
            " VALUES (:tree, :commit, :subject, :author, :hash, :kconfig, :compiler, :layout,"
            " :key, :origin, :trust, :posted, CAST(:patches AS jsonb)) ON CONFLICT DO NOTHING",
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
            posted=facts.posted,
            patches=json.dumps(facts.patches),
        )
        row = self.select_one(
            f"SELECT {_VARIANT} FROM variant WHERE tree = :tree AND commit = :commit AND kconfig ="
            " :kconfig AND compiler = :compiler AND layout = :layout"
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

    def get(self, number: int) -> Variant:
        row = self.select_one(f"SELECT {_VARIANT} FROM variant WHERE id = :id", id=number)
        assert row is not None
        return Variant(**row._mapping)

    def is_trusted(self, tree: int, commit: str) -> bool:
        return bool(
            self.scalar(
                "SELECT EXISTS (SELECT FROM variant WHERE tree = :tree AND commit = :commit AND"
                " trust = 'trusted')",
                tree=tree,
                commit=commit,
            )
        )
