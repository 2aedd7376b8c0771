"""What the kernels of a tree are called, for who types a name."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from .results import release_of
from .rows import Row, rows

_TIPS = """
SELECT c.new_commit AS commit, c.old_commit, min(v.subject) AS subject
FROM change c JOIN tree t ON t.id = c.tree
LEFT JOIN variant v ON (v.tree, v.commit) = (c.tree, c.new_commit)
WHERE t.name = :tree AND t.state = 'watched'
GROUP BY c.id, c.new_commit, c.old_commit ORDER BY c.id DESC LIMIT :most
"""
_RELEASES = """
SELECT v.commit, min(v.subject) AS subject FROM variant v JOIN tree t ON t.id = v.tree
WHERE t.name = :tree AND t.state = 'watched' AND v.origin <> 'patch' AND v.subject LIKE 'Linux %'
GROUP BY v.commit ORDER BY max(v.id) DESC LIMIT :most
"""


_NAMED: Final = """
SELECT DISTINCT ON (subject) subject, commit FROM variant
WHERE tree = (SELECT id FROM tree WHERE name = :tree AND state = 'watched')
  AND origin <> 'patch' AND subject = ANY(:subjects)
ORDER BY subject, id DESC
"""
_REF: Final = re.compile(r"(v[0-9][-.0-9a-z]*)([~^][0-9]{0,4})?")  # as a release is named


def release_commits(conn: sa.Connection, tree: str, refs: Collection[str]) -> dict[str, str]:
    """Commits of a watched tree by those of `refs` that are one of its releases, or one step back
    from it; of commits with the same name the latest."""
    found = {ref: match for ref in refs if (match := _REF.fullmatch(ref))}
    subjects = {f"Linux {match[1][1:]}" for match in found.values()}
    commits = {
        release_of(row["subject"]): row["commit"]
        for row in rows(conn, _NAMED, tree=tree, subjects=sorted(subjects))
    }
    return {
        ref: commits[match[1]] + (match[2] or "")
        for ref, match in found.items()
        if match[1] in commits
    }


def kernel_names(conn: sa.Connection, tree: str, most: int = 50) -> list[Row]:
    """Names of kernels of a watched tree, as {name, about, old}: `base`, `tip`, at most `most`
    latest tips and as many releases, which have the name of their tag (`release_commits` finds
    it). `old` is the tip before it, None for other names.
    """
    found = rows(
        conn,
        "SELECT branch FROM tree WHERE name = :tree AND state = 'watched'",
        tree=tree,
    )
    if not found:
        return []
    names = [
        _named("tip", f"latest commit of {found[0]['branch']}"),
        _named("base", "where the tree begins"),
    ]
    releases: dict[str, str] = {}
    for row in rows(conn, _RELEASES, tree=tree, most=most):
        if release := release_of(row["subject"]):
            releases.setdefault(release, row["commit"])
    called = {commit: release for release, commit in releases.items()}
    for row in rows(conn, _TIPS, tree=tree, most=most):
        name, old = (called.get(row[key], row[key][:12]) for key in ("commit", "old_commit"))
        names.append(_named(name, row["subject"] or "", old))
    names += [_named(release, commit[:12]) for release, commit in releases.items()]
    # the first of each name
    return list({one["name"]: one for one in reversed(names)}.values())[::-1]


def _named(name: str, about: str, old: str | None = None) -> Row:
    return {"name": name, "about": about, "old": old}
