"""Variants: one kernel to measure each."""

from __future__ import annotations

import json

from swingbot.core.model.records import TRUSTED, CommitFacts, KernelTrust, Tree, Variant
from swingbot.core.model.statuses import VariantOrigin
from swingbot_db.store.rows import Rows

_VARIANT = (
    "id, tree, commit, subject, author, tree_hash, kconfig, compiler, layout, build_key, trust,"
    " voucher"
)


class Variants(Rows):
    def add(
        self,
        tree: Tree,
        facts: CommitFacts,
        build_key: str,
        origin: VariantOrigin,
        layout: int = 0,
        trust: KernelTrust = TRUSTED,
    ) -> Variant:
        self.execute(
            "INSERT INTO variant (tree, commit, subject, author, tree_hash, kconfig, compiler,"
            " layout, build_key, origin, trust, voucher, posted, patches)"
            " VALUES (:tree, :commit, :subject, :author, :hash, :kconfig, :compiler, :layout,"
            " :key, :origin, :trust, :voucher, :posted, CAST(:patches AS jsonb))"
            " ON CONFLICT ON CONSTRAINT variant_once_a_level DO UPDATE SET voucher = NULL"
            " WHERE variant.voucher IS NOT NULL AND excluded.voucher IS NULL",
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
            trust=trust.level,
            voucher=trust.voucher,
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
            trust=trust.level,
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
                " trust = 'trusted' AND voucher IS NULL)",
                tree=tree,
                commit=commit,
            )
        )
