"""Patches of watched branches."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from swingbot.core.model.patches import BranchPatch, Patch
from swingbot_db.store.rows import Rows

_ADD: Final = """INSERT INTO patch (commit, parent, patch_id, subject, author)
  VALUES (:commit, :parent, :patch_id, :subject, :author) ON CONFLICT DO NOTHING"""
_BRANCH: Final = """SELECT b.state, p.commit, p.parent, p.patch_id, p.subject, p.author, w.commit AS
  was_commit, w.parent AS was_parent,
    w.patch_id AS was_patch_id, w.subject AS was_subject, w.author AS was_author
  FROM branch_patch b JOIN patch p ON p.commit = b.commit LEFT JOIN patch w ON w.commit = b.was
    WHERE b.tree = :tree ORDER BY b.position"""


class Patches(Rows):
    def set_branch(self, tree: int, patches: Sequence[BranchPatch]) -> None:
        known = {p.commit: p for each in patches for p in (each.patch, each.was) if p is not None}
        if known:
            self.conn.execute(sa.text(_ADD), [dataclasses.asdict(p) for p in known.values()])
        self.execute("DELETE FROM branch_patch WHERE tree = :tree", tree=tree)
        if patches:
            self.conn.execute(
                sa.text(
                    "INSERT INTO branch_patch (tree, position, commit, state, was) VALUES (:tree,"
                    " :position, :commit, :state, :was)"
                ),
                [
                    {
                        "tree": tree,
                        "position": position,
                        "commit": each.patch.commit,
                        "state": each.state,
                        "was": each.was.commit if each.was is not None else None,
                    }
                    for position, each in enumerate(patches, 1)
                ],
            )

    def branch(self, tree: int) -> list[BranchPatch]:
        return [
            BranchPatch(
                patch=Patch(
                    commit=row.commit,
                    parent=row.parent,
                    patch_id=row.patch_id,
                    subject=row.subject,
                    author=row.author,
                ),
                state=row.state,
                was=None
                if row.was_commit is None
                else Patch(
                    commit=row.was_commit,
                    parent=row.was_parent,
                    patch_id=row.was_patch_id,
                    subject=row.was_subject,
                    author=row.was_author,
                ),
            )
            for row in self.select(_BRANCH, tree=tree)
        ]

    def get(self, commit: str) -> Patch | None:
        row = self.select_one(
            "SELECT commit, parent, patch_id, subject, author FROM patch WHERE commit = :commit",
            commit=commit,
        )
        return Patch(**row._mapping) if row is not None else None
