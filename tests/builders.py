"""Rows for tests: each function writes one thing into a migrated database,
with plausible defaults, and gives back its number.

A test names only what it is about: `a_boot(conn, testbox, kernel, values={...})`.
Everything here goes through the real constraints, so a builder that invents an impossible state
fails at once. Nothing is random: spread comes from `spread()`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, Unpack

import sqlalchemy as sa

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # default time of the first thing that happens
METRIC = "page-fault.per_process_ops"
UNIT_JOB = "page-fault-faults-1"


def hex_of(*words: object, digits: int = 40) -> str:
    """A hash that looks real and is always the same for the same words."""
    return hashlib.sha256(":".join(map(str, words)).encode()).hexdigest()[:digits]


def spread(k: int, run: int = 0) -> float:
    """Noise of a testbox without a random generator: within -1 and 1, different for each boot and
    run.
    """
    return math.sin(12.9898 * (k + 1) + 78.233 * (run + 1)) * 0.8


def _insert(
    conn: sa.Connection, table: str, row: Mapping[str, Any], returning: str | None = "id"
) -> Any:
    columns = ", ".join(f'"{name}"' for name in row)
    values = ", ".join(
        f"CAST(:{name} AS jsonb)" if isinstance(value, (dict, Json)) else f":{name}"
        for name, value in row.items()
    )
    plain = {
        name: json.dumps(value.value if isinstance(value, Json) else value)
        if isinstance(value, (dict, Json))
        else value
        for name, value in row.items()
    }
    tail = f" RETURNING {returning}" if returning else ""
    result = conn.execute(
        sa.text(f"INSERT INTO {table} ({columns}) VALUES ({values}){tail}"), plain
    )
    return result.scalar_one() if returning else None


class Asker(TypedDict, total=False):
    """Who wants an order: a comparison or a bisection, by number."""

    comparison: int
    bisection: int


@dataclass(frozen=True, slots=True)
class Json:
    """A list that goes into a jsonb column (a plain list goes into an array column)."""

    value: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbox:
    """A testbox with a boot spec: where boots of a test happen, and what they run."""

    name: str
    spec: str
    unit_job: str = UNIT_JOB


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A variant with the key and image of its build."""

    variant: int
    commit: str
    build_key: str
    image: str


def a_tree(conn: sa.Connection, name: str = "mm-demo", **more: Any) -> int:
    row = {
        "name": name,
        "url": f"https://example.org/{name}.git",
        "branch": "master",
        "base_commit": hex_of(name, "base"),
        "tip_commit": hex_of(name, 20),
    }
    return int(_insert(conn, "tree", row | {"testboxes": ["vm-icount"], "polled_at": START} | more))


def a_change(
    conn: sa.Connection,
    tree: int,
    old: str,
    new: str,
    kind: str = "advance",
    seen_at: datetime = START,
) -> int:
    return int(
        _insert(
            conn,
            "change",
            {"tree": tree, "kind": kind, "old_commit": old, "new_commit": new, "seen_at": seen_at},
        )
    )


def a_testbox(
    conn: sa.Connection,
    name: str = "vm-icount",
    *,
    unit_job: str = UNIT_JOB,
    also: Sequence[str] = (),
    runs: int = 3,
    **more: Any,
) -> Testbox:
    """A testbox and one boot spec: `unit_job` and those in `also`, `runs` runs each.

    Called twice for a name, it adds a spec.
    """
    facts = {
        "name": name,
        "model": "QEMU q35",
        "nr_cpu": 1,
        "memory": "512M",
        "driver": "qemu",
        "label": "emulated; instruction-count clock; 1 vCPU: path length only"
        if name == "vm-icount"
        else "emulated; wall clock; noisy",
    }
    exists = conn.execute(
        sa.text("SELECT 1 FROM testbox WHERE name = :name"), {"name": name}
    ).first()
    if exists is None:
        _insert(
            conn,
            "testbox",
            {"name": name, "tbox_group": name, "facts": facts} | more,
            returning=None,
        )
    spec = a_spec(conn, unit_job, *also, runs=runs)
    return Testbox(name=name, spec=spec, unit_job=unit_job)


def a_spec(conn: sa.Connection, *unit_jobs: str, runs: int = 3) -> str:
    """What one boot runs, by content."""
    names = unit_jobs or (UNIT_JOB,)
    jobs = [
        {"name": name, "program": _program(name), "params": {"faults": "1"}, "runs": runs}
        for name in names
    ]
    sha256 = hex_of(*names, runs, digits=64)
    row = {"sha256": sha256, "unit_jobs": json.dumps(jobs)}
    conn.execute(
        sa.text(
            "INSERT INTO boot_spec VALUES (:sha256, CAST(:unit_jobs AS jsonb)) ON CONFLICT DO"
            " NOTHING"
        ),
        row,
    )
    return sha256


def _program(unit_job: str) -> str:
    return next(
        (name for name in ("page-fault", "will-it-scale") if unit_job.startswith(name)),
        unit_job.partition("-")[0],
    )


def a_variant(
    conn: sa.Connection,
    tree: int,
    number: int | str = 0,
    *,
    subject: str | None = None,
    image: str | None = None,
    origin: str = "branch",
    compiler: str = "gcc",
    kconfig: str = "vm-x86_64",
    layout: int = 0,
    patched: bool = False,
) -> Kernel:
    """The `number`-th commit of a tree as a kernel to measure; nothing is built yet.

    A patched kernel has a commit of its own, as if swingbot had applied a patch to the `number`-th.
    """
    commit = number if isinstance(number, str) and len(number) == 40 else hex_of(tree, number)
    if patched:
        commit, origin = hex_of(commit, "patched"), "patch"
    unusual = [
        word
        for word, usual in ((compiler, "gcc"), (kconfig, "vm-x86_64"), (layout, 0))
        if word != usual
    ]
    build_key = hex_of("build", commit, *unusual, digits=64)
    row = {
        "tree": tree,
        "commit": commit,
        "subject": subject or f"mm: commit {number}",
        "author": "A Developer <dev@example.org>",
        "tree_hash": hex_of("tree", commit),
        "kconfig": kconfig,
        "compiler": compiler,
        "layout": layout,
        "build_key": build_key,
        "origin": origin,
    }
    if patched:
        row["patches"] = Json([{"subject": "mm: a patch", "sha256": hex_of(commit, digits=64)}])
    variant = int(_insert(conn, "variant", row))
    return Kernel(
        variant=variant,
        commit=commit,
        build_key=build_key,
        image=image or hex_of("image", commit, *unusual, digits=64),
    )


def an_order(
    conn: sa.Connection,
    kernel: Kernel,
    testbox: Testbox | None = None,
    *,
    k: int = 0,
    series: str = "",
    state: str = "waiting",
    at: datetime = START,
    comparison: int | None = None,
    bisection: int | None = None,
    **more: Any,
) -> int:
    """A build order, or with a `testbox` a boot order.

    With `comparison` or `bisection`, wanted by it.
    """
    key = (
        f"build:{kernel.build_key}"
        if testbox is None
        else f"boot:{kernel.build_key}:{testbox.name}:{testbox.spec}:{series}:{k}"
    )
    row: dict[str, Any] = {
        "kind": "boot" if testbox else "build",
        "key": key,
        "build_key": kernel.build_key,
        "variant": kernel.variant,
        "state": state,
    }
    if testbox is not None:
        row |= {"testbox": testbox.name, "spec": testbox.spec, "series": series, "k": k}
    ended = at if state in ("done", "failed", "cancelled") else None
    order = int(_insert(conn, "orders", row | {"created_at": at, "ended_at": ended} | more))
    if comparison is not None or bisection is not None:
        _insert(
            conn,
            "want",
            {"order_id": order, "comparison": comparison, "bisection": bisection},
            returning=None,
        )
    return order


def an_attempt(
    conn: sa.Connection,
    order: int,
    *,
    number: int = 1,
    outcome: Mapping[str, Any] | None = None,
    state: str | None = None,
    at: datetime = START,
    **more: Any,
) -> int:
    """An attempt: running unless it has an outcome, or `state="dead"`."""
    state = state or ("running" if outcome is None else "ended")
    row: dict[str, Any] = {"order_id": order, "number": number, "state": state, "created_at": at}
    if outcome is not None:
        row["outcome"] = dict(outcome)
    if state != "running":
        row["ended_at"] = at + timedelta(seconds=float((outcome or {}).get("seconds", 1)))
    return int(_insert(conn, "attempt", row | more))


def a_dispatch(
    conn: sa.Connection,
    attempt: int,
    builder: str = "kernel",
    *,
    number: int = 1,
    state: str = "placed",
    at: datetime = START,
    **more: Any,
) -> int:
    row: dict[str, Any] = {
        "attempt": attempt,
        "number": number,
        "builder": builder,
        "external_id": f"o0/a{attempt}/d{number}",
        "state": state,
        "created_at": at,
    }
    if state != "wanted":
        row |= {
            "bb_buildset": attempt,
            "bb_request": attempt,
            "bb_builder": 1 if builder == "kernel" else 2,
            "bb_number": attempt,
            "placed_at": at,
        }
    if state == "over":
        row |= {"result": "success", "ended_at": at + timedelta(seconds=60)}
    return int(_insert(conn, "dispatch", row | more))


def _file(name: str, *words: object) -> dict[str, Any]:
    return {"sha256": hex_of(name, *words, digits=64), "size": 1000 + len(name)}


def a_kernel_build(
    conn: sa.Connection,
    kernel: Kernel,
    *,
    status: str = "built",
    seconds: float = 42.0,
    at: datetime = START,
    cached: bool = False,
    **asker: Unpack[Asker],
) -> int:
    """The build of a kernel with its order, attempt and dispatch; gives the order."""
    order = an_order(conn, kernel, state="done", at=at, **asker)
    files = {
        name: _file(name, kernel.build_key)
        for name in (
            ("bzImage", "config", "System.map", "build.log")
            if status == "built"
            else ("config", "build.log")
        )
    }
    reason = (
        None if status == "built" else "mm/page_alloc.c:12:1: error: expected ';' before 'return'"
    )
    outcome = {
        "version": 1,
        "kind": "build",
        "order": f"o{order}",
        "attempt": "a1",
        "status": status,
        "seconds": seconds,
        "reason": reason,
        "files": files,
        "worker": "builder",
    }
    attempt = an_attempt(conn, order, outcome=outcome, at=at)
    a_dispatch(conn, attempt, "kernel", state="over", at=at)
    row = {
        "build_key": kernel.build_key,
        "status": status,
        "image_sha256": kernel.image if status == "built" else None,
        "compiler_version": "gcc (Debian 12.2.0-14) 12.2.0",
        "sizes": {"text": 9_000_000, "data": 2_100_000, "bss": 700_000},
        "errors": [reason] if reason else [],
        "files": files,
        "seconds": seconds,
        "cached": cached,
        "attempt": attempt,
        "origin": "measured",
        "built_at": at + timedelta(seconds=seconds),
    }
    _insert(conn, "kernel_build", row, returning=None)
    return order


def a_kernel(
    conn: sa.Connection,
    tree: int,
    number: int | str = 0,
    *,
    subject: str | None = None,
    image: str | None = None,
    at: datetime = START,
    compiler: str = "gcc",
    kconfig: str = "vm-x86_64",
    layout: int = 0,
    patched: bool = False,
    **asker: Unpack[Asker],
) -> Kernel:
    """A variant that is built."""
    kernel = a_variant(
        conn,
        tree,
        number,
        subject=subject,
        image=image,
        compiler=compiler,
        kconfig=kconfig,
        layout=layout,
        patched=patched,
    )
    a_kernel_build(conn, kernel, at=at, **asker)
    return kernel


def a_boot(
    conn: sa.Connection,
    testbox: Testbox,
    kernel: Kernel,
    *,
    k: int = 0,
    series: str = "",
    values: Mapping[str, Sequence[float]] | Mapping[tuple[str, str], Sequence[float]] | None = None,
    outcome: str = "up",
    seconds: float = 21.0,
    at: datetime = START,
    order: int | None = None,
    facts: Mapping[str, Any] | None = None,
    **asker: Unpack[Asker],
) -> int:
    """One boot with its order, attempt and dispatch.

    `values` maps a metric, or (unit job, metric), to one value a run; None: a boot without runs.
    """
    if order is None:
        order = an_order(conn, kernel, testbox, k=k, series=series, state="done", at=at, **asker)
    files = {name: _file(name, order) for name in ("console.log", "results.tar", "qemu.log")}
    reason = (
        None
        if outcome == "up"
        else "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b"
    )
    document = {
        "version": 1,
        "kind": "boot",
        "order": f"o{order}",
        "attempt": "a1",
        "status": outcome,
        "seconds": seconds,
        "reason": reason,
        "files": files,
        "worker": testbox.name,
    }
    attempt = an_attempt(conn, order, outcome=document, at=at)
    a_dispatch(conn, attempt, f"boot-{testbox.name}", state="over", at=at)
    row = {
        "attempt": attempt,
        "order_id": order,
        "testbox": testbox.name,
        "build_key": kernel.build_key,
        "image_sha256": kernel.image,
        "spec": testbox.spec,
        "series": series,
        "k": k,
        "outcome": outcome,
        "reason": reason,
        "facts": dict(
            facts
            or {"kernel.release": "6.1.0-swingbot", "qemu.version": "7.2.11", "perturbation": k}
        ),
        "files": files,
        "seconds": seconds,
        "origin": "measured",
        "booted_at": at,
    }
    boot = int(_insert(conn, "boot", row))
    by_job: dict[str, dict[str, Sequence[float]]] = {}
    for key, of_metric in (values or {}).items():
        unit_job, metric = (testbox.unit_job, key) if isinstance(key, str) else key
        by_job.setdefault(unit_job, {})[metric] = of_metric
    for unit_job, metrics in by_job.items():
        for number in range(max(map(len, metrics.values()))):
            a_run(
                conn,
                boot,
                unit_job,
                number,
                {
                    metric: of_metric[number]
                    for metric, of_metric in metrics.items()
                    if number < len(of_metric)
                },
            )
    return boot


_ADD_SAMPLES = """
WITH added AS MATERIALIZED (
  SELECT n.run, n.metric::text AS metric, n.seq, n.value, x.testbox, r.unit_job
  FROM ({query}) n JOIN run r ON r.id = n.run JOIN boot x ON x.id = r.boot
), numbered AS (
  INSERT INTO measured_metric (testbox, unit_job, metric)
  SELECT DISTINCT testbox, unit_job, metric FROM added ORDER BY 1, 2, 3
  ON CONFLICT (testbox, unit_job, metric) DO UPDATE SET metric = excluded.metric RETURNING *
)
INSERT INTO sample (run, measured, seq, value) SELECT a.run, m.id, a.seq, a.value
FROM added a JOIN numbered m USING (testbox, unit_job, metric)
"""


def a_run(
    conn: sa.Connection,
    boot: int,
    unit_job: str = UNIT_JOB,
    number: int = 0,
    samples: Mapping[str, float] | None = None,
    reason: str | None = None,
) -> int:
    """One run; without samples it failed, for `reason`."""
    status = "ok" if samples else "failed"
    row = {
        "boot": boot,
        "unit_job": unit_job,
        "number": number,
        "status": status,
        "reason": None if samples else reason or "the program printed nothing",
        "seconds": 2.5,
    }
    run = int(_insert(conn, "run", row))
    for metric, value in (samples or {}).items():
        a_sample(conn, run, metric, value)
    return run


def a_sample(conn: sa.Connection, run: int, metric: str, value: float, seq: int = 0) -> None:
    row = {"run": run, "metric": metric, "value": value, "seq": seq}
    add_samples(conn, "SELECT :run AS run, :metric AS metric, :seq AS seq, :value AS value", row)


def add_samples(conn: sa.Connection, query: str, params: Mapping[str, Any] | None = None) -> None:
    """Add the samples that `query` gives, in its columns run, metric, seq and value."""
    conn.execute(sa.text(_ADD_SAMPLES.format(query=query)), dict(params or {}))


def a_comparison(
    conn: sa.Connection,
    tree: int,
    base: Kernel,
    head: Kernel,
    testboxes: Sequence[Testbox],
    *,
    boots: int = 3,
    status: str = "done",
    kind: str = "asked",
    at: datetime = START,
    **more: Any,
) -> int:
    """A comparison with its parts; rows come with `a_row`."""
    row: dict[str, Any] = {
        "tree": tree,
        "kind": kind,
        "boots": boots,
        "status": status,
        "created_at": at,
    }
    if status in ("done", "failed", "cancelled"):
        row["ended_at"] = at + timedelta(minutes=5)
    comparison = int(_insert(conn, "comparison", row | more))
    for arm, (name, kernel) in enumerate((("base", base), ("head", head))):
        of_arm = {"comparison": comparison, "arm": arm, "name": name, "variant": kernel.variant}
        _insert(conn, "comparison_arm", of_arm, returning=None)
    for testbox in testboxes:
        _insert(
            conn,
            "comparison_part",
            {"comparison": comparison, "testbox": testbox.name, "spec": testbox.spec},
            returning=None,
        )
    return comparison


def side(values: Sequence[float], runs: int = 3) -> dict[str, Any]:
    """One side of a row from its boot means."""
    mean = sum(values) / len(values)
    stddev = (
        math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
        if len(values) > 1
        else None
    )
    return {"boots": len(values), "runs": len(values) * runs, "mean": mean, "stddev": stddev}


def a_row(
    conn: sa.Connection,
    comparison: int,
    testbox: Testbox,
    metric: str = METRIC,
    *,
    base: Sequence[float] = (100.0, 101.0, 99.0),
    head: Sequence[float] = (82.0, 81.0, 83.0),
    verdict: str = "worse",
    better: str | None = "higher",
    unit: str = "ops/s",
    reason: str | None = None,
    unit_job: str | None = None,
    **more: Any,
) -> None:
    """One row of a comparison, in the shape of docs/json.md."""
    a, b = side(base), side(head)
    change = (b["mean"] / a["mean"] - 1) * 100
    detail = {
        "unit_job": unit_job or testbox.unit_job,
        "testbox": testbox.name,
        "metric": metric,
        "unit": unit,
        "better": better,
        "base": a,
        "head": b,
        "change_pct": change,
        "interval_pct": [change - 1.2, change + 1.2],
        "verdict": verdict,
        "reason": reason,
        "headline": not metric.startswith("perf-stat."),
        **more,
    }
    row = {
        "comparison": comparison,
        "testbox": testbox.name,
        "spec": testbox.spec,
        "unit_job": unit_job or testbox.unit_job,
        "metric": metric,
        "verdict": verdict,
        "change_pct": change,
        "detail": detail,
    }
    _insert(conn, "comparison_row", row, returning=None)


def a_swing(
    conn: sa.Connection,
    comparison: int,
    testbox: Testbox,
    metric: str = METRIC,
    *,
    change_pct: float = -18.0,
    direction: str = "worse",
    **more: Any,
) -> int:
    row = {
        "comparison": comparison,
        "testbox": testbox.name,
        "unit_job": testbox.unit_job,
        "metric": metric,
        "direction": direction,
        "change_pct": change_pct,
    }
    return int(_insert(conn, "swing", row | more))


def a_bisection(
    conn: sa.Connection,
    tree: int,
    testbox: Testbox,
    kernels: Sequence[Kernel],
    *,
    metric: str = METRIC,
    status: str = "running",
    origin: str = "watch",
    belief: Mapping[str, Any] | None = None,
    conclusion: Mapping[str, Any] | None = None,
    at: datetime = START,
    **more: Any,
) -> int:
    """A bisection over `kernels`: the first is good, the last is bad."""
    row: dict[str, Any] = {
        "tree": tree,
        "origin": origin,
        "good": kernels[0].commit,
        "bad": kernels[-1].commit,
        "testbox": testbox.name,
        "spec": testbox.spec,
        "series": "",
        "unit_job": testbox.unit_job,
        "metric": metric,
        "status": status,
        "belief": dict(belief or {}),
        "created_at": at,
        "ended_at": None if status == "running" else at + timedelta(minutes=10),
    }
    if conclusion is not None:
        row["conclusion"] = dict(conclusion)
    bisection = int(_insert(conn, "bisection", row | more))
    for idx, kernel in enumerate(kernels):
        _insert(
            conn,
            "bisection_point",
            {"bisection": bisection, "idx": idx, "variant": kernel.variant},
            returning=None,
        )
    return bisection


def an_observation(
    conn: sa.Connection,
    bisection: int,
    idx: int,
    k: int,
    *,
    boot: int | None = None,
    values: Sequence[float] = (),
    skip: str | None = None,
    phase: str = "search",
    at: datetime = START,
) -> None:
    """What was asked (`bisection_want`) and, when there are values or a reason to skip,
    what came back.
    """
    _insert(
        conn,
        "bisection_want",
        {"bisection": bisection, "idx": idx, "k": k, "phase": phase, "asked_at": at},
        returning=None,
    )
    if values or skip:
        row = {
            "bisection": bisection,
            "idx": idx,
            "k": k,
            "boot": boot,
            "values": list(values),
            "skip": skip,
            "seen_at": at + timedelta(seconds=25),
        }
        _insert(conn, "observation", row, returning=None)


def an_incident(
    conn: sa.Connection, tree: int, culprit: Kernel, *, bisections: Sequence[int] = (), **more: Any
) -> int:
    incident = int(_insert(conn, "incident", {"tree": tree, "culprit": culprit.variant} | more))
    for bisection in bisections:
        _insert(
            conn,
            "incident_bisection",
            {"incident": incident, "bisection": bisection},
            returning=None,
        )
        _insert(
            conn,
            "sighting",
            {
                "incident": incident,
                "bisection": bisection,
                "culprit": culprit.variant,
                "comparison": more.get("comparison"),
            },
        )
    return incident


def a_report(
    conn: sa.Connection,
    incident: int,
    *,
    kind: str = "first",
    state: str = "sent",
    body: str = "Hello,\n\nplease look.\n",
    at: datetime = START,
    **more: Any,
) -> int:
    row: dict[str, Any] = {
        "incident": incident,
        "kind": kind,
        "state": state,
        "message_id": f"<swingbot-i{incident}-{kind}-1@swingbot.localdomain>",
        "to_addrs": ["swingbot-reports@localhost"],
        "subject": f"[mm-demo] mm: commit 7: {METRIC} 18.0% worse",
        "body": body,
        "created_at": at,
        "sent_at": at if state == "sent" else None,
    }
    return int(_insert(conn, "report", row | more))
