"""Variants in memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from swingbot.core.access.tokens import EndedToken
from swingbot.core.model.records import TRUSTED, CommitFacts, KernelTrust, Tree, Variant
from swingbot.core.model.statuses import VariantOrigin
from tests.fakes.store.access import Access
from tests.fakes.store.orders import OPEN
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

    def note_sent(self, token: int, commits: Collection[str]) -> None:
        for commit in commits:
            self.db.sent_commits.setdefault(commit, token)

    def sent_by(self, token: int, commits: Collection[str]) -> set[str]:
        return {commit for commit in commits if self.db.sent_commits.get(commit) == token}

    def unvouched(self) -> dict[int, EndedToken]:
        over = {
            number: token
            for number, row in self.db.tokens.items()
            if row.digest and (token := Access(self.db).ended(row.digest)) is not None
        }
        standing = {v.build_key for v in self.db.variants.values() if v.voucher not in over}
        return {
            o.id: over[voucher]
            for _, row in sorted(self.db.orders.items())
            if (o := row.order).state in OPEN
            and o.build_key not in standing
            and (voucher := self.db.variants[o.variant].voucher) is not None
        }
