"""One metric of one unit job over all measured commits of a tree, on every testbox."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound

from .histories import histories
from .noise import plain_record
from .results import release_of, result_tree
from .rows import Row, first, rows, shown

_TIPS: Final = "SELECT commit FROM v_tips WHERE tree = :tree ORDER BY place"
_POINTS: Final = """
SELECT p.bisection, p.idx, v.commit FROM bisection_point p
JOIN bisection b ON b.id = p.bisection JOIN tree t ON t.id = b.tree
JOIN variant v ON v.id = p.variant
WHERE t.name = :tree AND v.commit = ANY(:commits) ORDER BY p.bisection, p.idx
"""
# Boots are shared by image, so a boot counts for every commit whose kernel is that image. One row a
# kernel: histories have thousands.
_KERNELS: Final = """
SELECT v.commit, v.id AS variant, v.subject, v.author, v.kconfig, v.compiler, v.layout, v.origin,
  kb.build_key, n.called, i.boots, i.testboxes, i.means, i.runs, i.times
FROM (
  SELECT x.image_sha256, array_agg(x.id ORDER BY x.id) AS boots,
    array_agg(x.testbox ORDER BY x.id) AS testboxes, array_agg(b.mean ORDER BY x.id) AS means,
    array_agg(b.runs ORDER BY x.id) AS runs,
    array_agg(to_char(x.booted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') ORDER BY x.id)
      AS times
  FROM measured_metric m JOIN boot_mean b ON b.measured = m.id
  JOIN boot x ON x.id = b.boot AND x.testbox = m.testbox
  WHERE (m.unit_job, m.metric) = (:unit_job, :metric) GROUP BY 1
) i
JOIN kernel_build kb ON kb.image_sha256 = i.image_sha256
JOIN variant v ON v.build_key = kb.build_key JOIN tree t ON t.id = v.tree
LEFT JOIN (SELECT variant, min(name) AS called FROM comparison_arm
  WHERE name ~ '^v[0-9]+[.][0-9]' GROUP BY 1) n ON n.variant = v.id
WHERE t.name = :tree ORDER BY i.boots[1], v.id
"""
_MARKS: Final = """
SELECT s.id, s.comparison, s.testbox, s.direction, coalesce(f.change_pct, s.change_pct)
  AS change_pct, s.state, s.bisection, v.commit,
  s.source, (s.evidence->>'spread_ratio')::double precision AS spread_ratio
FROM swing s JOIN comparison_pair c ON c.id = s.comparison JOIN variant v ON v.id = c.head
JOIN tree t ON t.id = c.tree LEFT JOIN bisection b ON b.id = s.bisection
LEFT JOIN v_searches f ON f.root = s.bisection AND f.sole
  AND f.status IN ('culprit', 'credible_set', 'creep')
WHERE t.name = :tree AND s.unit_job = :unit_job AND s.metric = :metric
  AND s.state NOT IN ('suspected', 'refuted') AND b.status IS DISTINCT FROM 'not_reproduced'
ORDER BY s.id
"""
_CULPRITS: Final = """
SELECT DISTINCT coalesce(i.merged_into, i.id) AS incident, j.status, v.commit, v.subject, b.testbox,
  b.id AS bisection, f.change_pct, (SELECT coalesce(array_agg('r' || r.id ORDER BY r.id), '{}')
    FROM report r WHERE r.incident = j.id AND r.state <> 'dropped') AS reports
FROM sighting s JOIN incident i ON i.id = s.incident
JOIN incident j ON j.id = coalesce(i.merged_into, i.id)
JOIN variant v ON v.id = s.culprit JOIN tree t ON t.id = v.tree
JOIN bisection b ON b.id = s.bisection
LEFT JOIN v_searches f ON f.search = 'b' || b.id AND f.commits = ARRAY[v.commit]
WHERE t.name = :tree AND b.unit_job = :unit_job AND b.metric = :metric ORDER BY 1, 6
"""
_NOISE: Final = """
SELECT testbox, detail FROM noise_record WHERE unit_job = :unit_job AND metric = :metric
"""
_UNITS: Final = """
SELECT r.detail->>'unit' AS unit, min(r.comparison) AS first, max(r.comparison) AS last,
  max(coalesce(c.ended_at, c.created_at)) AS until
FROM comparison_row r JOIN comparison c ON c.id = r.comparison JOIN tree t ON t.id = c.tree
WHERE t.name = :tree AND r.unit_job = :unit_job AND r.metric = :metric
GROUP BY 1 ORDER BY 2
"""
_TESTBOXES: Final = """
SELECT x.name, x.state, x.tbox_group, x.facts->>'label' AS label,
  (SELECT coalesce(array_agg(o.name ORDER BY o.name), '{}') FROM testbox o
    WHERE x.state = 'gone' AND o.state <> 'gone' AND o.tbox_group = x.tbox_group) AS others
FROM testbox x WHERE x.name = ANY(:names) OR x.name = :name ORDER BY x.name
"""
# When the testbox was out of service.
_ABSENCES: Final = """
SELECT e.state, e.why, e.begin, e."end" FROM (
  SELECT id, state, why, at AS begin, lead(at) OVER (ORDER BY id) AS "end"
  FROM testbox_event WHERE testbox = :testbox) e
WHERE e.state IN ('quarantined', 'lost', 'drained') ORDER BY e.id DESC LIMIT :most
"""
_MOST_ABSENCES: Final = 50
_BOOT: Final = ids.LETTERS["boot"]  # thousands of ids, each made in place
# Unit jobs and metrics of the last boots of the tree's kernels on the testbox.
_CHOICES: Final = """
SELECT DISTINCT m.unit_job, m.metric
FROM (
  SELECT x.id FROM variant v JOIN tree t ON t.id = v.tree
    JOIN kernel_build kb ON kb.build_key = v.build_key
    JOIN boot x ON x.image_sha256 = kb.image_sha256
  WHERE t.name = :tree AND x.testbox = :testbox ORDER BY x.id DESC LIMIT :boots
) x
CROSS JOIN measured_metric m JOIN boot_mean b ON b.measured = m.id AND b.boot = x.id
WHERE m.testbox = :testbox
"""
_CHOICE_BOOTS: Final = 50
_MEASURED: Final = """
SELECT 1 FROM measured_metric
WHERE (testbox, unit_job, metric) = (:testbox, :unit_job, :metric)
"""
_TREES: Final = """
SELECT t.name AS tree, x.testbox, m.unit_job, count(DISTINCT x.id) AS boots
FROM measured_metric m JOIN boot_mean b ON b.measured = m.id JOIN boot x ON x.id = b.boot
JOIN kernel_build kb ON kb.image_sha256 = x.image_sha256
JOIN variant v ON v.build_key = kb.build_key JOIN tree t ON t.id = v.tree
WHERE m.metric = :metric
  AND (CAST(:unit_job AS text) = '' OR m.unit_job = :unit_job)
  AND (CAST(:testbox AS text) = '' OR m.testbox = :testbox)
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def metric_places(
    conn: sa.Connection, metric: str, *, unit_job: str = "", testbox: str = ""
) -> list[Row]:
    """Where boots report the metric: {tree, testbox, unit_job, boots}.

    `unit_job`, `testbox`: only this one; '' for all.
    """
    return rows(conn, _TREES, unit_job=unit_job, metric=metric, testbox=testbox)


def metric_history(conn: sa.Connection, tree: str, testbox: str, unit_job: str, metric: str) -> Row:
    """All levels of a metric over the commits of a tree, oldest commit first.

    `kernels`: {commit, variant, subject, author, release, kconfig, compiler, layout, origin,
    build_key, tip, ordered, boots: [{boot, testbox, mean, runs, booted_at}]}. `ordered` is False
    where neither the tips of the branch nor a bisection says where the commit belongs; those follow
    the others. `absences`: when the testbox was out of service, the latest first, as {state, why,
    begin, end (None: still)}. `swings`, `culprits` and `findings` are those of the metric on all
    testboxes, `noise` its records by testbox, `units` the units that its rows had, oldest first,
    `testboxes` those that measured it. Raises NotFound with the nearest names.
    """
    of = result_tree(conn, tree)
    place = {"tree": tree, "unit_job": unit_job, "metric": metric}
    kernels = [_kernel(row) for row in conn.execute(sa.text(_KERNELS), place).all()]
    names = {boot["testbox"] for kernel in kernels for boot in kernel["boots"]}
    if testbox not in names:
        raise NotFound(_no_boots(conn, testbox, sorted(names), place))
    tips, order = _order(conn, tree, [kernel["commit"] for kernel in kernels])
    known = {commit: at for at, commit in enumerate(order)}
    for kernel in kernels:
        kernel["tip"], kernel["ordered"] = kernel["commit"] in tips, kernel["commit"] in known
    kernels.sort(key=lambda one: known.get(one["commit"], len(known)))
    return {
        "tree": tree,
        "testbox": testbox,
        "unit_job": unit_job,
        "metric": metric,
        "kconfig": of["kconfig"],
        "compiler": of["compiler"],
        "base_commit": of["base_commit"],
        "tip_commit": of["tip_commit"],
        "kernels": kernels,
        "swings": [
            row | {kind: shown(kind, row[kind]) for kind in ("comparison", "bisection")}
            for row in rows(conn, _MARKS, **place)
        ],
        "culprits": [
            row | {kind: shown(kind, row[kind]) for kind in ("incident", "bisection")}
            for row in rows(conn, _CULPRITS, **place)
        ],
        "findings": [
            {key: row[key] for key in ("testbox", "upto", "findings")}
            for row in histories(conn, int(of["id"][1:]))
            if (row["unit_job"], row["metric"]) == (unit_job, metric)
        ],
        "noise": {
            row["testbox"]: plain_record(row["detail"])
            for row in rows(conn, _NOISE, unit_job=unit_job, metric=metric)
        },
        "units": [
            row | {key: shown("comparison", row[key]) for key in ("first", "last")}
            for row in rows(conn, _UNITS, **place)
        ],
        "testboxes": rows(conn, _TESTBOXES, names=sorted(names), name=testbox),
        "absences": rows(conn, _ABSENCES, testbox=testbox, most=_MOST_ABSENCES),
    }


def _kernel(row: sa.Row[Any]) -> Row:
    facts: tuple[Any, ...] = tuple(row)
    commit, variant, subject, author, kconfig, compiler, layout, origin, build_key, called = facts[
        :10
    ]
    return {
        "commit": commit,
        "variant": shown("variant", variant),
        "subject": subject,
        "author": author,
        "kconfig": kconfig,
        "compiler": compiler,
        "layout": layout,
        "origin": origin,
        "build_key": build_key,
        "release": release_of(subject, called),
        "boots": [
            {
                "boot": f"{_BOOT}{boot}",
                "testbox": testbox,
                "mean": mean,
                "runs": runs,
                "booted_at": time,
            }
            for boot, testbox, mean, runs, time in zip(*facts[10:], strict=True)
        ],
    }


def _order(conn: sa.Connection, tree: str, commits: list[str]) -> tuple[set[str], list[str]]:
    """Tips, and all commits whose place is known: tips as they were seen, and between them the
    points of bisections.
    """
    order: list[str] = list(conn.execute(sa.text(_TIPS), {"tree": tree}).scalars())
    tips, known = set(order), set(order)
    before: Row | None = None
    for point in rows(conn, _POINTS, tree=tree, commits=commits):
        same = before is not None and before["bisection"] == point["bisection"]
        if point["commit"] not in known:
            at = order.index(before["commit"]) + 1 if same and before else len(order)
            order.insert(at, point["commit"])
            known.add(point["commit"])
        before = point
    return tips, order


def _no_boots(
    conn: sa.Connection, testbox: str, elsewhere: list[str], place: dict[str, str]
) -> str:
    """Say why there is nothing to show, and what there is instead."""
    tree, unit_job, metric = (place[key][:80] for key in ("tree", "unit_job", "metric"))
    known = first(conn, "SELECT state FROM testbox WHERE name = :name", name=testbox)
    if elsewhere:
        why = (
            f"testbox {testbox[:80]!r} has not measured {metric} of {unit_job} on tree {tree}"
            if known
            else f"testbox {testbox[:80]!r} does not exist; a renamed testbox keeps its old name in"
            f" old results"
        )
        return f"{why}; it was measured on {', '.join(elsewhere)}"
    if known is None:
        return f"testbox {testbox[:80]!r} does not exist; /testboxes lists all testboxes"
    choices = rows(conn, _CHOICES, tree=place["tree"], testbox=testbox, boots=_CHOICE_BOOTS)
    if not choices:
        return f"testbox {testbox[:80]} has booted no kernel of tree {tree} with a result"
    here = [row["metric"] for row in choices if row["unit_job"] == place["unit_job"]]
    if here:
        near = get_close_matches(place["metric"], here, n=5, cutoff=0.3) or sorted(here)[:5]
        return (
            f"{unit_job} on {testbox} has no metric {metric!r}; the nearest of its {len(here)}"
            f" metrics are {', '.join(near)}"
        )
    jobs = sorted({row["unit_job"] for row in choices})
    near = get_close_matches(place["unit_job"], jobs, n=5, cutoff=0.3) or jobs[:5]
    return (
        f"unit job {unit_job!r} has not run on {testbox} for tree {tree}; the nearest of its"
        f" {len(jobs)} unit jobs are {', '.join(near)}"
    )


def known_names(conn: sa.Connection, testbox: str, joined: str) -> tuple[str, str]:
    """Split `unit job/metric`, either of which may contain `/`, where the testbox measured it."""
    parts = joined.split("/")
    choices = [("/".join(parts[:at]), "/".join(parts[at:])) for at in range(1, len(parts))]
    if len(choices) == 1:
        return choices[0]
    for unit_job, metric in choices:
        if first(conn, _MEASURED, testbox=testbox, unit_job=unit_job, metric=metric):
            return unit_job, metric
    return choices[0] if choices else (joined, "")
