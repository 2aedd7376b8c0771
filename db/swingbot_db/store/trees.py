"""Trees and changes in their branches."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import sqlalchemy as sa

from swingbot.core.model.records import (
    Change,
    JobFile,
    Tree,
)
from swingbot.core.model.statuses import ChangeKind
from swingbot_db.store.rows import Rows, records

_TREE = (
    "id, name, url, branch, base_commit, tip_commit, job_files, testboxes, paths,"
    " kconfig, compiler, trust, min_effect_pct"
)


class Trees(Rows):
    def add(self, tree: Tree) -> Tree:
        number = self.scalar(
            "INSERT INTO tree (name, url, branch, base_commit, job_files, testboxes, paths,"
            " kconfig, compiler, trust, min_effect_pct)"
            " VALUES (:name, :url, :branch, :base, CAST(:files AS jsonb), :testboxes, :paths,"
            " :kconfig, :compiler, :trust, :min_effect) RETURNING id",
            name=tree.name,
            url=tree.url,
            branch=tree.branch,
            base=tree.base_commit,
            files=json.dumps([dataclasses.asdict(file) for file in tree.job_files]),
            testboxes=list(tree.testboxes),
            paths=list(tree.paths),
            kconfig=tree.kconfig,
            compiler=tree.compiler,
            trust=tree.trust,
            min_effect=tree.min_effect_pct,
        )
        return dataclasses.replace(tree, id=number)

    def all(self) -> list[Tree]:
        return [
            _tree(row)
            for row in self.select(f"SELECT {_TREE} FROM tree WHERE state = 'watched' ORDER BY id")
        ]

    def named(self, name: str) -> Tree | None:
        row = self.select_one(
            f"SELECT {_TREE} FROM tree WHERE name = :name AND state = 'watched'", name=name
        )
        return _tree(row) if row else None

    def get(self, number: int) -> Tree:
        row = self.select_one(f"SELECT {_TREE} FROM tree WHERE id = :id", id=number)
        assert row is not None
        return _tree(row)

    def remove(self, number: int) -> None:
        self.execute("UPDATE tree SET state = 'removed' WHERE id = :id", id=number)

    def note_poll(self, number: int, problem: str | None) -> None:
        self.execute(
            "UPDATE tree SET polled_at = clock_timestamp(), problem = :problem WHERE id = :id",
            id=number,
            problem=problem,
        )

    def add_change(self, tree: int, kind: ChangeKind, old: str, new: str) -> None:
        self.execute(
            "INSERT INTO change (tree, kind, old_commit, new_commit) VALUES (:tree, :kind, :old,"
            " :new) ON CONFLICT DO NOTHING",
            tree=tree,
            kind=kind,
            old=old,
            new=new,
        )
        self.execute("UPDATE tree SET tip_commit = :new WHERE id = :tree", tree=tree, new=new)

    def changes_to_compare(self) -> list[Change]:
        rows = self.select(
            "SELECT id, tree, kind, old_commit, new_commit FROM change c WHERE NOT EXISTS (SELECT"
            " FROM comparison WHERE change = c.id)"
            " AND EXISTS (SELECT FROM tree WHERE id = c.tree AND state = 'watched') ORDER BY id"
        )
        return records(Change, rows)


def _tree(row: sa.Row[Any]) -> Tree:
    return Tree(
        **{
            **row._mapping,
            "job_files": tuple(JobFile(**file) for file in row.job_files),
            "testboxes": tuple(row.testboxes),
            "paths": tuple(row.paths),
        }
    )
