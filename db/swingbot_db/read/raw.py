"""Raw results of a comparison, experiment, bisection, incident, report, order or boot.

Raw results are files, runs and samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model import ids

from .bisections import bisection
from .incidents import incident, report
from .orders import boot, order
from .rows import Row, rows, shown
from .tables import table

_BOOTS = """
SELECT x.id, x.order_id, x.testbox, x.k, x.purpose, x.series, x.outcome, x.reason, x.image_sha256,
       x.build_key, x.facts, x.files, x.seconds, x.origin, x.booted_at, v.commit, v.subject
FROM boot x JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant
  WHERE x.id = ANY(:ids) ORDER BY x.id
"""
_RUN = "CASE WHEN rr.id IS NOT NULL THEN rr.name || '/' || r.root_run END AS result_root"
_RUNS = f"""
SELECT r.boot, {_RUN}, r.unit_job, r.number AS run, r.status, r.reason, r.seconds, r.parser
FROM run r LEFT JOIN result_root rr ON rr.id = r.result_root WHERE r.boot = ANY(:ids)
  ORDER BY r.boot, r.unit_job, r.number
"""
_SAMPLES = f"""
SELECT {_RUN}, v.commit, x.id AS boot, x.k, x.purpose, x.testbox, r.unit_job, r.number AS run,
  m.metric, s.measured, s.seq, s.value, x.origin, x.booted_at
FROM boot x JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant
  JOIN run r ON r.boot = x.id JOIN sample s ON s.run = r.id
  JOIN measured_metric m ON m.id = s.measured
LEFT JOIN result_root rr ON rr.id = r.result_root
WHERE r.id = ANY(:runs) ORDER BY x.id, r.unit_job, r.number, m.metric, s.seq
"""
# One run with more samples than fit on a page, by its primary key from (measured, seq) on.
_SAMPLES_AFTER = _SAMPLES.replace(
    "WHERE r.id = ANY(:runs) ORDER BY x.id, r.unit_job, r.number, m.metric, s.seq",
    "WHERE r.id = :run AND s.run = :run AND (s.measured, s.seq) > (:measured, :seq)"
    " ORDER BY s.measured, s.seq LIMIT :most",
)
_COUNTS = """
SELECT r.id, (SELECT count(*) FROM sample s WHERE s.run = r.id) AS samples
FROM run r WHERE r.boot = ANY(:ids) ORDER BY r.boot, r.unit_job, r.number
"""
_KERNELS = (
    "SELECT build_key, files FROM kernel_build WHERE build_key = ANY(:keys) ORDER BY build_key"
)
HAS_RAW: Final = ("comparison", "experiment", "bisection", "incident", "report", "order", "boot")
_BOOTS_AT_ONCE: Final = 20  # whose samples are counted at once
PAGE_SAMPLES: Final = 1000  # held in memory at once, about 1 MB

Reading = Callable[[], AbstractContextManager[sa.Connection]]  # opens a connection


def _roles(conn: sa.Connection, kind: str, id: str) -> dict[str, list[str]]:
    """Map each boot id to its role in this request: its side, or its place in the range."""
    roles: dict[str, list[str]] = {}
    if kind in ids.TABLES:
        document = table(conn, id)
        names = {arm["arm"]: arm["name"] for arm in document["arms"]}
        for booted in document["boot_list"]:
            roles.setdefault(booted["id"], []).append(names[booted["arm"]])
    elif kind == "bisection":
        for entry in bisection(conn, id)["log"]:
            place = f"commit {entry['idx']}"
            if entry["boot"] and place not in roles.setdefault(entry["boot"], []):
                roles[entry["boot"]].append(place)
    elif kind == "report":
        roles = _roles(conn, "incident", report(conn, id)["incident"])
    elif kind == "incident":
        roles = _roles_of_incident(conn, id)
    else:
        only = boot(conn, id, samples=False)["id"] if kind == "boot" else order(conn, id)["boot"]
        roles = {only: []} if only else {}
    return roles


def _roles_of_incident(conn: sa.Connection, id: str) -> dict[str, list[str]]:
    """Roles in its comparison and bisections, each prefixed with the id of the request."""
    document = incident(conn, id)
    roles: dict[str, list[str]] = {}
    for kind, numbers in (
        ("comparison", [document["comparison"]] if document["comparison"] else []),
        ("bisection", document["bisections"]),
    ):
        for number in numbers:
            for name, own in _roles(conn, kind, number).items():
                roles.setdefault(name, []).extend(f"{number} {role}" for role in own)
    return roles


def _read_id(id: str) -> tuple[str, str]:
    kind, number = ids.read(id)
    if kind not in HAS_RAW:
        raise ids.BadId(
            f"a {kind} has no raw results; comparisons (c5), experiments (e6), bisections (b2),"
            " incidents (i1), reports (r4), orders (o7)"
            " and boots (x12) have some"
        )
    return kind, ids.show(kind, number)


def raw_manifest(conn: sa.Connection, id: str) -> Row:
    """`files` ([{"path", "sha256", "size"}]) and `boots` (each with `runs`) of an object.

    Objects are c5, e6, b2, i1, r4, o7 or x12. Raises NotFound, and BadId for an object without raw
    results.
    """
    kind, id = _read_id(id)
    roles = _roles(conn, kind, id)
    numbers = [int(name[1:]) for name in roles]
    boots = rows(conn, _BOOTS, ids=numbers)
    runs: dict[int, list[Row]] = {}
    for run in rows(conn, _RUNS, ids=numbers):
        runs.setdefault(run.pop("boot"), []).append(run)
    files: list[Row] = []
    for row in boots:
        row["runs"] = runs.get(row["id"], [])
        row["id"], row["order"] = shown("boot", row["id"]), shown("order", row.pop("order_id"))
        row["roles"] = roles[row["id"]]
        if kind != "order":
            files += _paths(row["files"], "" if kind == "boot" else f"{row['id']}/")
    if kind == "order":
        for attempt in order(conn, id)["attempts"]:
            files += _paths(attempt["files"], f"{attempt['id']}/")
    elif kind != "boot":
        for build in rows(conn, _KERNELS, keys=sorted({row["build_key"] for row in boots})):
            files += _paths(build["files"], f"kernels/{build['build_key'][:16]}/")
    return {"id": id, "kind": kind, "files": files, "boots": boots}


def _paths(files: Any, prefix: str) -> list[Row]:
    return [
        {"path": f"{prefix}{name}", "sha256": file["sha256"], "size": file["size"]}
        for name, file in sorted((files or {}).items())
    ]


def samples(conn: sa.Connection, id: str) -> Iterator[Row]:
    """Samples of c5, e6, b2, i1, r4, o7 or x12, boot by boot; see `sample_pages`."""
    for page in sample_pages(lambda: nullcontext(conn), id):
        yield from page


def sample_pages(reading: Reading, id: str) -> Iterator[list[Row]]:
    """Samples of c5, e6, b2, i1, r4, o7 or x12, boot by boot, PAGE_SAMPLES at a time.

    Keys: result_root, commit, side, boot, k, testbox, unit_job, run, metric, seq, value, ...
    `side` is the boot's roles, joined by '+'. `reading` is called for each page, so that a slow
    consumer holds no connection. Samples do not change once they are stored.
    """
    kind, id = _read_id(id)
    with reading() as conn:
        roles = _roles(conn, kind, id)
    numbers = sorted(int(name[1:]) for name in roles)
    for begin in range(0, len(numbers), _BOOTS_AT_ONCE):
        with reading() as conn:
            counts = rows(conn, _COUNTS, ids=numbers[begin : begin + _BOOTS_AT_ONCE])
        for runs in _paged(counts):
            for page in _pages_of(reading, runs):
                for row in page:
                    del row["measured"]
                    row["boot"] = shown("boot", row["boot"])
                    row["side"] = "+".join(roles[row["boot"]])
                yield page


def _paged(counts: Iterable[Row]) -> Iterator[list[int]]:
    """Consecutive runs with PAGE_SAMPLES samples at most; or one run with more."""
    runs: list[int] = []
    total = 0
    for row in counts:
        if runs and total + row["samples"] > PAGE_SAMPLES:
            yield runs
            runs, total = [], 0
        runs.append(row["id"])
        total += row["samples"]
    if runs:
        yield runs


def _pages_of(reading: Reading, runs: list[int]) -> Iterator[list[Row]]:
    if len(runs) == 1:
        yield from _after(reading, runs[0])
        return
    with reading() as conn:
        page = rows(conn, _SAMPLES, runs=runs)
    yield page


def _after(reading: Reading, run: int) -> Iterator[list[Row]]:
    measured, seq = 0, -1
    while True:
        with reading() as conn:
            page = rows(
                conn, _SAMPLES_AFTER, run=run, measured=measured, seq=seq, most=PAGE_SAMPLES
            )
        if page:
            measured, seq = page[-1]["measured"], page[-1]["seq"]
            yield page
        if len(page) < PAGE_SAMPLES:
            return
