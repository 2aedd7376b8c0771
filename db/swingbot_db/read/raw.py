"""Everything that was kept of a comparison, bisection, order or boot: the files of its boots and every sample."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from swingbot.core.model import ids

from .bisections import bisection
from .comparisons import comparison
from .orders import boot, order
from .rows import Row, rows, shown

_BOOTS = """
SELECT x.id, x.order_id, x.testbox, x.k, x.series, x.outcome, x.reason, x.image_sha256,
       x.build_key, x.facts, x.files, x.seconds, x.origin, x.booted_at, v.commit, v.subject
FROM boot x JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant WHERE x.id = ANY(:ids) ORDER BY x.id
"""
_SAMPLES = """
SELECT x.id AS boot, x.testbox, x.k, x.booted_at, x.origin, v.commit, r.unit_job, r.number AS run, s.metric, s.seq, s.value
FROM boot x JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant JOIN run r ON r.boot = x.id JOIN sample s ON s.run = r.id
WHERE x.id = ANY(:ids) ORDER BY x.id, r.unit_job, r.number, s.metric, s.seq
"""
HAS_RAW = ("comparison", "bisection", "order", "boot")


def _boots(conn: sa.Connection, kind: str, id: str) -> dict[str, list[str]]:
    """Boot id -> what it was in this request: its side, or its place in the range."""
    roles: dict[str, list[str]] = {}
    if kind == "comparison":
        for row in comparison(conn, id)["boot_list"]:
            roles.setdefault(row["id"], []).append(row["side"])
    elif kind == "bisection":
        for row in bisection(conn, id)["log"]:
            if row["boot"]:
                roles.setdefault(row["boot"], []).append(f"commit {row['idx']}")
    else:
        found = boot(conn, id)["id"] if kind == "boot" else order(conn, id)["boot"]
        roles = {found: []} if found else {}
    return roles


def raw_manifest(conn: sa.Connection, id: str) -> Row:
    """`files` ([{"path", "sha256", "size"}]) and `boots` of c5, b2, o7 or x12. Raises BadId for an id of something without raw results."""
    kind, number = ids.read(id)
    if kind not in HAS_RAW:
        raise ids.BadId(f"a {kind} has no raw results; comparisons (c5), bisections (b2), orders (o7) and boots (x12) have")
    id = ids.show(kind, number)
    roles = _boots(conn, kind, id)
    boots = rows(conn, _BOOTS, ids=[int(boot[1:]) for boot in roles])
    files: list[Row] = []
    for row in boots:
        row["id"], row["order"] = shown("boot", row["id"]), shown("order", row.pop("order_id"))
        row["roles"] = roles[row["id"]]
        if kind != "order":
            files += _paths(row["files"], "" if kind == "boot" else f"{row['id']}/")
    if kind == "order":
        for attempt in order(conn, id)["attempts"]:
            files += _paths(attempt["files"], f"{attempt['id']}/")
    return {"id": id, "kind": kind, "files": files, "boots": boots}


def _paths(files: Any, prefix: str) -> list[Row]:
    return [{"path": f"{prefix}{name}", "sha256": file["sha256"], "size": file["size"]} for name, file in sorted((files or {}).items())]


def samples(conn: sa.Connection, id: str) -> list[Row]:
    """Every sample of c5, b2, o7 or x12: boot, testbox, k, commit, unit_job, run, metric, seq, value, and `role` (side or place)."""
    kind, number = ids.read(id)
    roles = _boots(conn, kind, ids.show(kind, number)) if kind in HAS_RAW else {}
    found = rows(conn, _SAMPLES, ids=[int(boot[1:]) for boot in roles])
    return [{"role": "+".join(roles[f"x{row['boot']}"])} | row | {"boot": shown("boot", row["boot"])} for row in found]
