"""An experiment with boots and judged rows in a database, of any size, for tests of its page.

`python -m tests.tables URL KERNELS TESTBOXES` fills a migrated database and prints the id.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import Reference
from swingbot.core.stats.family import compare_family
from swingbot.core.stats.rows import BootRuns, Rule
from swingbot.core.table.references import references
from swingbot_db.engine import make_engine
from tests import builders as make

METRICS = (make.METRIC, "netperf.Throughput_Mbps")
JOBS = (make.UNIT_JOB, "netperf-udp-1s")
COUNTER = "perf-stat.instructions"
SUBJECTS = (
    "mm/page_alloc: check the batch earlier",
    "mm/page_alloc: drain the per-CPU lists on low high-order frees",
    "mm/vmstat: reorder a test",
    "mm/slub: tidy a debug message unread since it was written, and say why",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The experiment's number and what it is made of."""

    id: int
    kernels: Sequence[make.Kernel]
    testboxes: Sequence[make.Testbox]


def an_experiment(
    conn: sa.Connection,
    *,
    kernels: int = 3,
    testboxes: int = 1,
    boots: int = 4,
    against: Sequence[Reference] = ("above",),
    names: Sequence[str] = (),
    metrics: int = 1,
    unbuildable: Sequence[int] = (),
    status: str = "done",
    tree: str = "mm-tables",
    **more: Any,
) -> Made:
    """Every fourth kernel costs 6 %, and the one after it takes that back; judged if `done`."""
    of = make.a_tree(conn, tree)
    places = [_a_testbox(conn, number, metrics) for number in range(testboxes)]
    built = [_a_kernel(conn, of, number, fails=number in unbuildable) for number in range(kernels)]
    row = {"tree": of, "kind": "experiment", "boots": boots, "status": status}
    row |= {"created_at": make.START, "against": list(against)} | more
    if status in ("done", "failed", "cancelled"):
        row["ended_at"] = make.START
    number = int(make._insert(conn, "comparison", row))
    for arm, kernel in enumerate(built):
        name = names[arm] if arm < len(names) else ("v6.1" if arm == 0 else kernel.commit[:12])
        of_arm = {"comparison": number, "arm": arm, "name": name, "variant": kernel.variant}
        make._insert(conn, "comparison_arm", of_arm | {"axes": {"kernel": name}}, returning=None)
    for testbox in places:
        part = {"comparison": number, "testbox": testbox.name, "spec": testbox.spec}
        make._insert(conn, "comparison_part", part, returning=None)
    made = Made(id=number, kernels=built, testboxes=places)
    for place, testbox in enumerate(places):
        measured = _boot_all(conn, made, testbox, place, boots, metrics, unbuildable)
        if status == "done":
            _judge(conn, made, testbox, measured, against, unbuildable)
    return made


def _a_testbox(conn: sa.Connection, number: int, metrics: int) -> make.Testbox:
    name = "vm-icount" if number == 0 else f"lkp-box-{number}"
    return make.a_testbox(conn, name, also=JOBS[1:metrics])


def _a_kernel(conn: sa.Connection, tree: int, number: int, *, fails: bool) -> make.Kernel:
    kernel = make.a_variant(conn, tree, 1000 + number, subject=SUBJECTS[number % len(SUBJECTS)])
    if fails:
        make.a_kernel_build(conn, kernel, status="failed")
    else:
        make.a_kernel_build(conn, kernel)
    return kernel


def _level(arm: int) -> float:
    return 0.94 if arm % 4 == 2 else 1.0


Measured = dict[tuple[str, str], list[list[BootRuns]]]  # (unit job, metric) -> arm -> boots


def _boot_all(
    conn: sa.Connection,
    made: Made,
    testbox: make.Testbox,
    place: int,
    boots: int,
    metrics: int,
    unbuildable: Sequence[int],
) -> Measured:
    keys = [*zip(JOBS[:metrics], METRICS[:metrics], strict=True), (JOBS[0], COUNTER)]
    found: Measured = {key: [[] for _ in made.kernels] for key in keys}
    for arm, kernel in enumerate(made.kernels):
        for k in range(boots) if arm not in unbuildable else ():
            values = {
                key: [
                    (1 + n)
                    * 50_000.0
                    * (1 + place)
                    * _level(arm)
                    * (1 + 0.004 * make.spread(k + 7 * arm + 3 * n, run + place))
                    for run in range(3)
                ]
                for n, key in enumerate(keys)
            }
            make.a_boot(conn, testbox, kernel, k=k, values=values, comparison=made.id)
            for key in keys:
                found[key][arm].append(BootRuns(k=k, values=tuple(values[key])))
    return found


def _judge(
    conn: sa.Connection,
    made: Made,
    testbox: make.Testbox,
    measured: Measured,
    against: Sequence[Reference],
    unbuildable: Sequence[int],
) -> None:
    names = [{"kernel": str(arm)} for arm in range(len(made.kernels))]
    for (unit_job, metric), arms in measured.items():
        headline = metric != COUNTER
        for rule in against:
            pairs = references(rule, names)
            rows = compare_family(
                arms,
                pairs,
                Rule(better="higher" if headline else None, min_effect_pct=2.0),
                invalid={
                    i: "the kernel does not build: mm/x.c:1: error: no such thing"
                    for i, pair in enumerate(pairs)
                    if set(pair) & set(unbuildable)
                },
            )
            for (reference, arm), row in zip(pairs, rows, strict=True):
                named = replace(
                    row,
                    unit_job=unit_job,
                    testbox=testbox.name,
                    metric=metric,
                    unit="ops/s",
                    klass="benchmark" if headline else "counter",
                    headline=headline,
                )
                _store(conn, made.id, testbox, named, rule, reference, arm)


def _store(
    conn: sa.Connection,
    experiment: int,
    testbox: make.Testbox,
    row: ComparisonRow,
    rule: Reference,
    reference: int,
    arm: int,
) -> None:
    values = {
        "comparison": experiment,
        "testbox": testbox.name,
        "spec": testbox.spec,
        "unit_job": row.unit_job,
        "metric": row.metric,
        "against": rule,
        "arm": arm,
        "reference": reference,
        "verdict": row.verdict,
        "change_pct": row.change_pct,
        "detail": json.loads(json.dumps(row.to_json())),
    }
    make._insert(conn, "comparison_row", values, returning=None)


if __name__ == "__main__":
    with make_engine(sys.argv[1]).begin() as connection:
        kernels, testboxes = int(sys.argv[2]), int(sys.argv[3])
        print(f"e{an_experiment(connection, kernels=kernels, testboxes=testboxes, metrics=2).id}")
