"""A metric over the tips of a branch, and over single commits of it."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from swingbot.core.model.lookup import NotFound

from .histories import finished_searches
from .rows import Row, first, rows, shown

_TIPS = "SELECT commit FROM v_tips WHERE tree = :tree ORDER BY place DESC LIMIT :most"
# Boots are shared by image, so a boot counts for every commit whose kernel is that image.
_LEVELS = """
SELECT v.commit, v.id AS variant, v.subject, v.author, x.id AS boot, b.mean, b.runs, x.booted_at
FROM variant v JOIN tree t ON t.id = v.tree
JOIN kernel_build kb ON kb.build_key = v.build_key
JOIN boot x ON x.image_sha256 = kb.image_sha256 AND x.testbox = :testbox AND x.origin = 'measured'
JOIN measured_metric m
  ON (m.unit_job, m.metric, m.testbox) = (:unit_job, :metric, x.testbox)
JOIN boot_mean b ON b.measured = m.id AND b.boot = x.id
WHERE t.name = :tree AND v.layout = 0 AND v.commit = ANY(:commits) ORDER BY x.id
"""
_WATCHED = """
SELECT r.testbox, r.unit_job, r.metric, r.detail->>'unit' AS unit, c.id AS comparison, v.commit,
  v.subject,
       (r.detail->'head'->>'mean')::double precision AS mean,
       (r.detail->'head'->>'stddev')::double precision AS stddev,
       (r.detail->'head'->>'boots')::integer AS boots
FROM comparison_pair c JOIN comparison_row r ON r.comparison = c.id JOIN variant v ON v.id = c.head
WHERE c.tree = (SELECT max(id) FROM tree WHERE name = :tree) AND c.kind = 'watch'
  AND c.status = 'done'
  AND (r.detail->>'headline')::boolean AND r.detail->'head'->>'mean' IS NOT NULL
ORDER BY r.testbox, r.unit_job, r.metric, c.id DESC
"""
_OF_LEVEL = ("commit", "subject", "mean", "stddev", "boots")
MOST = 60  # tips in one plot
MOST_LEVELS = 1000  # of one metric


def levels(conn: sa.Connection, tree: str) -> list[Row]:
    """Levels of each headline metric over the tips of a branch, oldest first.

    Each is {testbox, unit_job, metric, unit, levels: [{comparison, commit, subject, mean,
    stddev, boots}], searches} with the last `MOST_LEVELS` levels, and what finished searches know
    about its steps (`histories.finished_searches`). Raises NotFound if the tree does not exist.
    """
    found = first(conn, "SELECT max(id) AS id FROM tree WHERE name = :tree", tree=tree)
    if found is None or found["id"] is None:
        raise NotFound(f"tree {tree!r} does not exist; `swingbot tree list` lists all trees")
    entries: dict[tuple[str, str, str], Row] = {}
    for row in rows(conn, _WATCHED, tree=tree):
        key = row["testbox"], row["unit_job"], row["metric"]
        names = ("testbox", "unit_job", "metric", "unit")
        entry = entries.setdefault(key, {name: row[name] for name in names} | {"levels": []})
        if len(entry["levels"]) < MOST_LEVELS:
            level = {name: row[name] for name in _OF_LEVEL}
            entry["levels"].append({"comparison": shown("comparison", row["comparison"])} | level)
    searches = finished_searches(conn, found["id"])
    return [
        entry | {"levels": entry["levels"][::-1], "searches": searches.get(key, [])}
        for key, entry in entries.items()
    ]


def history(
    conn: sa.Connection,
    *,
    tree: str,
    testbox: str,
    unit_job: str,
    metric: str,
    also: Iterable[str] = (),
) -> list[Row]:
    """The last tips of the branch, oldest first, then the commits `also`.

    Each is {commit, subject, author, variant, place, boots: [{boot, mean, runs, booted_at}]}.
    `place` is the number of the tip, from 0; None for a commit that was never a tip. Commits
    without a measurement are left out.
    """
    tips = [tip["commit"] for tip in rows(conn, _TIPS, tree=tree, most=MOST)][::-1]
    entries: dict[str, Row] = {}
    shown_commits = [*tips, *(commit for commit in also if commit not in tips)]
    for row in rows(
        conn,
        _LEVELS,
        tree=tree,
        testbox=testbox,
        unit_job=unit_job,
        metric=metric,
        commits=shown_commits,
    ):
        place = tips.index(row["commit"]) if row["commit"] in tips else None
        entry = entries.setdefault(
            row["commit"],
            {
                "commit": row["commit"],
                "subject": row["subject"],
                "author": row["author"],
                "variant": shown("variant", row["variant"]),
                "place": place,
                "boots": [],
            },
        )
        entry["boots"].append(
            {
                "boot": shown("boot", row["boot"]),
                "mean": row["mean"],
                "runs": row["runs"],
                "booted_at": row["booted_at"],
            }
        )
    return [entries[commit] for commit in shown_commits if commit in entries]
