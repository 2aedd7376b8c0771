"""Variants: one kernel to measure each."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from swingbot.core.access.tokens import EndedToken
from swingbot.core.model.records import TRUSTED, CommitFacts, KernelTrust, Tree, Variant
from swingbot.core.model.statuses import VariantOrigin
from swingbot_db.store.access import VALID_TOKEN
from swingbot_db.store.rows import Rows

_VARIANT = (
    "id, tree, commit, subject, author, tree_hash, kconfig, compiler, layout, build_key, trust,"
    " voucher"
)
# The variant of an order is the first one with its contents.
_UNVOUCHED = f"""
SELECT o.id AS order_id, t.id, t.who, coalesce(t.revoked_at, t.expires_at) AS at, t.revoked_by
FROM variant v JOIN access_token t ON t.id = v.voucher JOIN orders o ON o.variant = v.id
WHERE v.voucher IS NOT NULL AND NOT ({VALID_TOKEN}) AND o.state IN ('waiting', 'ready', 'running')
  AND NOT EXISTS (SELECT FROM variant other WHERE other.build_key = v.build_key
    AND (other.voucher IS NULL OR EXISTS (SELECT FROM access_token WHERE id = other.voucher
      AND {VALID_TOKEN})))
ORDER BY o.id"""


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
            " ON CONFLICT ON CONSTRAINT variant_once_a_level DO NOTHING",
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
        variant = Variant(**row._mapping)
        if trust.voucher is not None or variant.voucher is None:
            return variant
        # Only here: an update in the INSERT would lock the row even where it changes nothing, and
        # all who ask for the same kernel would wait for each other.
        self.execute("UPDATE variant SET voucher = NULL WHERE id = :id", id=variant.id)
        return replace(variant, voucher=None)

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

    def note_sent(self, token: int, commits: Collection[str]) -> None:
        self.execute(
            "INSERT INTO sent_commit (commit, token) SELECT commit, :token FROM"
            " unnest(CAST(:commits AS text[])) commit ORDER BY commit ON CONFLICT DO NOTHING",
            token=token,
            commits=list(commits),
        )

    def sent_by(self, token: int, commits: Collection[str]) -> set[str]:
        rows = self.select(
            "SELECT commit FROM sent_commit WHERE commit = ANY(:commits) AND token = :token",
            commits=list(commits),
            token=token,
        )
        return {row.commit for row in rows}

    def unvouched(self) -> dict[int, EndedToken]:
        return {
            row.order_id: EndedToken(
                number=row.id, who=row.who, at=row.at, revoked_by=row.revoked_by
            )
            for row in self.select(_UNVOUCHED)
        }
