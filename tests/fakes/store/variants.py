"""Variants in memory."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model.records import TRUSTED, CommitFacts, KernelTrust, Tree, Variant
from swingbot.core.model.statuses import VariantOrigin
from tests.fakes.store.tables import Noun


class Variants(Noun):
    def add(
        self,
        tree: Tree,
        facts: CommitFacts,
        build_key: str,
        origin: VariantOrigin,
        layout: int = 0,
        trust: KernelTrust = TRUSTED,
    ) -> Variant:
        wanted = (tree.id, facts.commit, tree.kconfig, tree.compiler, layout, trust.level)
        for known in self.db.variants.values():
            own = (known.tree, known.commit, known.kconfig, known.compiler, known.layout)
            if (*own, known.trust) == wanted:
                if trust.voucher is None and known.voucher is not None:
                    known = self.db.variants[known.id] = replace(known, voucher=None)
                return known
        variant = Variant(
            id=self.db.next_id("variant"),
            tree=tree.id,
            commit=facts.commit,
            subject=facts.subject,
            author=facts.author,
            tree_hash=facts.tree_hash,
            kconfig=tree.kconfig,
            compiler=tree.compiler,
            layout=layout,
            build_key=build_key,
            trust=trust.level,
            voucher=trust.voucher,
        )
        self.db.variants[variant.id] = variant
        return variant

    def get(self, number: int) -> Variant:
        return self.db.variants[number]

    def is_trusted(self, tree: int, commit: str) -> bool:
        return any(
            (v.tree, v.commit, v.kernel_trust) == (tree, commit, TRUSTED)
            for v in self.db.variants.values()
        )
