"""Trees in memory."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model.records import Change, Tree
from swingbot.core.model.statuses import ChangeKind
from tests.fakes.store.tables import Noun, Refused, TreeRow


class Trees(Noun):
    def add(self, tree: Tree) -> Tree:
        if self.named(tree.name) is not None:
            raise Refused(f"tree {tree.name} is watched")
        stored = replace(tree, id=self.db.next_id("tree"), tip_commit=None)
        self.db.trees[stored.id] = TreeRow(tree=stored)
        return replace(tree, id=stored.id)

    def all(self) -> list[Tree]:
        return [row.tree for row in self.db.trees.values() if row.watched]

    def named(self, name: str) -> Tree | None:
        return next((tree for tree in self.all() if tree.name == name), None)

    def get(self, number: int) -> Tree:
        return self.db.trees[number].tree

    def remove(self, number: int) -> None:
        self.db.trees[number] = replace(self.db.trees[number], watched=False)

    def note_poll(self, number: int, problem: str | None) -> None:
        self.db.trees[number] = replace(self.db.trees[number], problem=problem)

    def add_change(self, tree: int, kind: ChangeKind, old: str, new: str) -> None:
        known = {(c.tree, c.old_commit, c.new_commit) for c in self.db.changes.values()}
        if (tree, old, new) not in known:
            change = Change(
                id=self.db.next_id("change"),
                tree=tree,
                kind=kind,
                old_commit=old,
                new_commit=new,
            )
            self.db.changes[change.id] = change
        row = self.db.trees[tree]
        self.db.trees[tree] = replace(row, tree=replace(row.tree, tip_commit=new))

    def changes_to_compare(self) -> list[Change]:
        compared = {row.change for row in self.db.comparisons.values()}
        return [
            change
            for change in self.db.changes.values()
            if change.id not in compared and self.db.trees[change.tree].watched
        ]
