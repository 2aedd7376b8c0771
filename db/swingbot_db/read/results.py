"""Everything that was measured on a few kernels, whoever requested the boots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model.lookup import NotFound
from swingbot_db import limits

from . import estimate
from .rows import Row, first, rows, shown

_TREE: Final = """
SELECT t.id, t.name, t.branch, t.base_commit, t.tip_commit, t.kconfig, t.compiler, t.trust, t.state,
  t.testboxes,
  (SELECT coalesce(jsonb_agg(j->>'name'), '[]') FROM jsonb_array_elements(t.job_files) j) AS jobs
FROM tree t WHERE t.name = :name ORDER BY t.id DESC LIMIT 1
"""
# Boots are shared by image, so a kernel has those of every identical kernel.
_KERNELS: Final = """
SELECT v.id, v.commit, v.subject, v.author, v.kconfig, v.compiler, v.layout, v.origin, v.trust,
  v.build_key, kb.status AS build, kb.image_sha256, kb.errors[1] AS error,
  (SELECT min(a.name) FROM comparison_arm a
    WHERE a.variant = v.id AND a.name ~ '^v[0-9]+[.][0-9]') AS called,
  x.boots, x.testboxes, x.latest
FROM variant v JOIN tree t ON t.id = v.tree LEFT JOIN kernel_build kb ON kb.build_key = v.build_key
LEFT JOIN LATERAL (SELECT count(*) AS boots, array_agg(DISTINCT b.testbox) AS testboxes,
  max(b.booted_at) AS latest FROM boot b WHERE b.image_sha256 = kb.image_sha256) AS x ON true
WHERE t.name = :tree AND {which}
ORDER BY coalesce(x.boots, 0) > 0 DESC, v.layout,
  (v.kconfig, v.compiler) = (t.kconfig, t.compiler) DESC, x.boots DESC NULLS LAST, v.id DESC
LIMIT :most
"""
_PREFIX: Final = re.compile(r"[0-9a-f]{7,40}")
_VARIANT: Final = re.compile(r"v([0-9]{1,17})")
# The commit that is tagged v6.1.112 has the subject "Linux 6.1.112".
_RELEASE: Final = re.compile(r"v?([0-9]+\.[0-9]+(?:\.[0-9]+)?(?:-rc[0-9]+)?)")
_SUBJECT: Final = re.compile(r"Linux (?:Stable |Release )?([0-9]+\.[0-9][-.0-9a-z]*)")
_LIKE: Final = re.compile(r"[\\%_]")
_BOOTS: Final = """
SELECT x.id, x.image_sha256, x.testbox, x.spec, x.series, x.purpose, x.k, x.outcome, x.reason,
  x.facts, x.booted_at
FROM boot x WHERE x.image_sha256 = ANY(:images) ORDER BY x.id
"""
_SPECS: Final = "SELECT sha256, unit_jobs FROM boot_spec WHERE sha256 = ANY(:specs)"
_TESTBOXES: Final = """
SELECT name, tbox_group, state, facts->>'label' AS label,
  coalesce((facts->>'repeatable')::boolean, false) AS repeatable
FROM testbox WHERE name = ANY(:names) ORDER BY name
"""
_OTHERS: Final = """
SELECT name FROM testbox WHERE state <> 'gone' AND tbox_group = :tbox_group AND name <> :name
ORDER BY name
"""
# Without a pattern: the metrics of the benchmarks themselves, not the hundreds of counters.
_VALUES: Final = """
SELECT r.boot, r.unit_job, s.metric, array_agg(s.value ORDER BY r.number) AS "values"
FROM run r
JOIN LATERAL (SELECT m.metric, avg(s.value) AS value FROM sample s
  JOIN measured_metric m ON m.id = s.measured WHERE s.run = r.id
  AND CASE WHEN CAST(:pattern AS text) IS NULL
      THEN split_part(m.metric, '.', 1) = ANY(CAST(:programs AS text[]))
      ELSE m.metric ILIKE :pattern END
  GROUP BY m.metric) AS s ON true
WHERE r.boot = ANY(:boots) AND r.status = 'ok'
GROUP BY r.boot, r.unit_job, s.metric ORDER BY r.unit_job, s.metric, r.boot LIMIT :most
"""
_RAN: Final = """
SELECT DISTINCT 'x' || r.boot AS boot, r.unit_job FROM run r
WHERE r.boot = ANY(:boots) AND r.status = 'ok' AND EXISTS (SELECT FROM sample s WHERE s.run = r.id)
"""
_UNITS: Final = """
SELECT DISTINCT ON (a.variant, r.unit_job, r.metric) a.variant, r.unit_job, r.metric,
  r.detail->>'unit' AS unit
FROM comparison_row r JOIN comparison_arm a ON a.comparison = r.comparison
  AND a.arm IN (r.arm, r.reference)
WHERE a.variant = ANY(:variants) ORDER BY a.variant, r.unit_job, r.metric, r.comparison DESC
"""
_NOISE: Final = """
SELECT testbox, unit_job, metric, detail FROM noise_record
WHERE testbox = ANY(:testboxes) AND unit_job = ANY(:unit_jobs)
"""
_INCIDENTS: Final = """
SELECT coalesce(i.merged_into, i.id) AS incident, j.status, v.commit, v.subject, v.author,
  t.name AS tree, b.id AS bisection, b.testbox, b.unit_job, b.metric,
  f.change_pct
FROM sighting s JOIN incident i ON i.id = s.incident
JOIN incident j ON j.id = coalesce(i.merged_into, i.id)
JOIN variant v ON v.id = s.culprit JOIN tree t ON t.id = v.tree
JOIN bisection b ON b.id = s.bisection
LEFT JOIN v_searches f ON f.search = 'b' || b.id AND f.commits = ARRAY[v.commit]
ORDER BY s.id DESC LIMIT :most
"""
_TREES: Final = """
SELECT t.name, max(t.state) AS state, count(DISTINCT v.id) AS kernels
FROM tree t JOIN variant v ON v.tree = t.id JOIN kernel_build kb ON kb.build_key = v.build_key
WHERE EXISTS (SELECT FROM boot b WHERE b.image_sha256 = kb.image_sha256)
GROUP BY t.name ORDER BY max(t.state) DESC, t.name
"""
_MOST_SIGHTINGS: Final = 1000


def trees_with_results(conn: sa.Connection) -> list[Row]:
    """Trees with kernels that were booted, watched ones first: {name, state, kernels}."""
    return rows(conn, _TREES)


def result_tree(conn: sa.Connection, name: str) -> Row:
    """The latest tree of that name. Raises NotFound."""
    tree = first(conn, _TREE, name=name)
    if tree is None:
        raise NotFound(f"tree {name[:80]!r} does not exist; /trees lists all trees")
    return tree | {"id": shown("tree", tree["id"])}


def measured_kernels(conn: sa.Connection, tree: str, most: int = 200) -> list[Row]:
    """Kernels of a tree that have boots, the latest boot first, as in `named_kernels`."""
    which = "x.boots > 0"
    kernels = rows(conn, _KERNELS.format(which=which), tree=tree, most=10 * most)
    return sorted(map(_kernel, kernels), key=lambda one: one["latest"], reverse=True)[:most]


def named_kernels(conn: sa.Connection, tree: Mapping[str, Any], ref: str) -> list[Row]:
    """Kernels that `ref` names: a variant, a commit or prefix, base, tip, the branch or a release.

    The likeliest first: with boots, of the tree's own configuration, with the most boots. Each is
    {id, name, release, commit, subject, author, kconfig, compiler, layout, origin, trust,
    build_key, build, image_sha256, error, boots, testboxes, latest}; `name` is for people. Empty if
    no kernel of the tree has that name.
    """
    ends = {"base": tree["base_commit"], "tip": tree["tip_commit"]}
    ends |= {tree["branch"]: tree["tip_commit"]}
    variant, release = _VARIANT.fullmatch(ref), _RELEASE.fullmatch(ref)
    choices: list[tuple[str, Row]] = []
    if ref in ends:
        choices.append(("v.commit = :ref", {"ref": ends[ref]}))
    if variant:
        choices.append(("v.id = :ref", {"ref": int(variant[1])}))
    if _PREFIX.fullmatch(ref):
        choices.append(("v.commit LIKE :ref", {"ref": f"{ref}%"}))
    if release:
        choices.append(("v.subject = :ref", {"ref": f"Linux {release[1]}"}))
    choices.append(
        ("EXISTS (SELECT FROM comparison_arm a WHERE a.variant = v.id AND a.name = :ref)",
         {"ref": ref})
    )  # fmt: skip
    for which, params in choices:
        sql = _KERNELS.format(which=which)
        kernels = rows(conn, sql, tree=tree["name"], most=limits.NAMED_KERNELS, **params)
        if kernels:
            return [_kernel(row) for row in kernels]
    return []


def _kernel(row: Row) -> Row:
    release = release_of(row["subject"], row.pop("called"))
    name = release or row["commit"][:12]
    return row | {
        "id": shown("variant", row["id"]),
        "name": name,
        "release": release,
        "boots": row["boots"] or 0,
        "testboxes": row["testboxes"] or [],
    }


def release_of(subject: str, called: str | None = None) -> str | None:
    """The release that a commit is, from its subject or from what a request called it."""
    match = _SUBJECT.fullmatch(subject)
    return f"v{match[1]}" if match else called


def results(conn: sa.Connection, kernels: Sequence[Row], metric: str = "") -> Row:
    """All boots of `kernels` (rows of `named_kernels`) and the values of their good runs.

    `boots`: {kernel (its index), id, testbox, spec, series, purpose, k, outcome, reason, facts,
    booted_at}; a boot of two identical kernels is listed for both. `values`: boot id -> list of
    {unit_job, metric, values (one per run)}. `ran`: boot id -> unit jobs with results. `specs`:
    unit jobs by spec; `testboxes` by name, with `others`, the testboxes of the group that a removed
    one may have become; `units`: the unit of the metric in the latest row of each kernel, as
    {kernel, unit_job, metric, unit}; `noise`: records as {testbox, unit_job, metric, detail}.
    `metric` selects all metrics whose name contains it, counters too; else those that the
    benchmarks report. `cut`: there are more values than one page judges.
    """
    images: dict[str, list[int]] = {}
    for index, kernel in enumerate(kernels):
        if kernel["image_sha256"]:
            images.setdefault(kernel["image_sha256"], []).append(index)
    boots = rows(conn, _BOOTS, images=list(images))
    specs = {
        row["sha256"]: row["unit_jobs"]
        for row in rows(conn, _SPECS, specs=sorted({boot["spec"] for boot in boots}))
    }
    programs = sorted({job["program"] for jobs in specs.values() for job in jobs})
    escaped = _LIKE.sub(r"\\\g<0>", metric)
    found = rows(
        conn,
        _VALUES,
        boots=[boot["id"] for boot in boots],
        pattern=f"%{escaped}%" if metric else None,
        programs=programs,
        most=limits.JUDGED_VALUES + 1,
    )
    values: dict[str, list[Row]] = {}
    for row in found[: limits.JUDGED_VALUES]:
        values.setdefault(f"x{row.pop('boot')}", []).append(row)
    names = sorted({boot["testbox"] for boot in boots})
    unit_jobs = sorted({job["name"] for jobs in specs.values() for job in jobs})
    ran: dict[str, list[str]] = {}
    for row in rows(conn, _RAN, boots=[boot["id"] for boot in boots]):
        ran.setdefault(row["boot"], []).append(row["unit_job"])
    return {
        "boots": [
            {"kernel": index, **boot, "id": shown("boot", boot["id"])}
            for boot in boots
            for index in images[boot["image_sha256"]]
        ],
        "specs": specs,
        "ran": ran,
        "values": values,
        "testboxes": {
            row["name"]: _testbox(conn, row) for row in rows(conn, _TESTBOXES, names=names)
        },
        "units": _units(conn, kernels),
        "noise": rows(conn, _NOISE, testboxes=names, unit_jobs=unit_jobs),
        "cut": len(found) > limits.JUDGED_VALUES,
    }


def _testbox(conn: sa.Connection, row: Row) -> Row:
    gone = row["state"] == "gone"
    others = rows(conn, _OTHERS, tbox_group=row["tbox_group"], name=row["name"]) if gone else []
    return row | {"others": [other["name"] for other in others]}


def _units(conn: sa.Connection, kernels: Sequence[Row]) -> list[Row]:
    numbers = {int(kernel["id"][1:]): index for index, kernel in enumerate(kernels)}
    return [
        {"kernel": numbers[row.pop("variant")]} | row
        for row in rows(conn, _UNITS, variants=list(numbers))
    ]


def found_culprits(conn: sa.Connection) -> list[Row]:
    """Culprits of all bisections, the latest first.

    {incident, status, commit, subject, author, tree, bisection, testbox, unit_job, metric,
    change_pct}; duplicates have the incident that they were merged into.
    """
    return [
        row
        | {"incident": shown("incident", row["incident"])}
        | {"bisection": shown("bisection", row["bisection"])}
        for row in rows(conn, _INCIDENTS, most=_MOST_SIGHTINGS)
    ]


def boot_times(
    conn: sa.Connection, places: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], float | None]:
    """Usual seconds of a boot by (testbox, spec); None before the first boot there."""
    return {place: estimate.boot_seconds(conn, *place) for place in set(places)}


def build_time(conn: sa.Connection) -> float | None:
    """Usual seconds of a kernel build; None before the first."""
    return estimate.build_seconds(conn)
