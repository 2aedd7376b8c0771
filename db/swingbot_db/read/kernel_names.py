"""What the kernels of a tree are called, for who types a name."""

from __future__ import annotations

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


def kernel_names(conn: sa.Connection, tree: str, most: int = 50) -> list[Row]:
    """Names of kernels of a watched tree, as {name, about, old}: `base`, `tip`, at most `most`
    latest tips and as many releases. `old` is the tip before it, None for other names.
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
    for row in rows(conn, _TIPS, tree=tree, most=most):
        names.append(_named(row["commit"][:12], row["subject"] or "", row["old_commit"][:12]))
    for row in rows(conn, _RELEASES, tree=tree, most=most):
        if release := release_of(row["subject"]):
            names.append(_named(row["commit"][:12], release))
    # the first of each name
    return list({one["name"]: one for one in reversed(names)}.values())[::-1]


def _named(name: str, about: str, old: str | None = None) -> Row:
    return {"name": name, "about": about, "old": old}
