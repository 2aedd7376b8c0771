"""Means of boots are those of their samples, and questions over all history read means only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.settings import load
from swingbot.core.model.lookup import NotFound
from swingbot.core.raw.changes import ChangedValues
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_db.store import PgTransaction
from swingbot_jobs.reading.result import ParsedRun
from tests import builders as make
from tests.fakes.kernels import kept_by

COUNTER = "perf-stat.instructions"
_MEANS = """
SELECT m.testbox, m.unit_job, m.metric, b.boot, b.runs, b.samples, round(b.mean::numeric, 9) AS mean
FROM boot_mean b JOIN measured_metric m ON m.id = b.measured ORDER BY 1, 2, 3, 4
"""
_OF_SAMPLES = """
SELECT x.testbox, r.unit_job, m.metric, x.id AS boot, count(DISTINCT r.id) AS runs,
  count(*) AS samples, round(avg(s.value)::numeric, 9) AS mean
FROM boot x JOIN run r ON r.boot = x.id JOIN sample s ON s.run = r.id
  JOIN measured_metric m ON m.id = s.measured
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""


def means(conn: sa.Connection) -> list[Any]:
    """The means that are kept, after comparing them with those of the samples."""
    kept = conn.execute(sa.text(_MEANS)).all()
    assert kept == conn.execute(sa.text(_OF_SAMPLES)).all()
    return [(row.metric, row.boot, row.runs, row.samples, float(row.mean)) for row in kept]


def two_boots(conn: sa.Connection) -> tuple[int, int]:
    """Boots of one kernel on two testboxes, both with a benchmark's metric and a counter."""
    kernel = make.a_kernel(conn, make.a_tree(conn), 0)
    values = {make.METRIC: [1.0, 3.0], COUNTER: [5e9, 7e9]}
    first, second = (
        make.a_boot(conn, make.a_testbox(conn, name), kernel, values=values)
        for name in ("vm-icount", "vm-tcg")
    )
    return first, second


def test_a_mean_is_that_of_the_samples_whatever_happens_to_them(conn: sa.Connection) -> None:
    first, second = two_boots(conn)
    assert (make.METRIC, first, 2, 2, 2.0) in means(conn)
    run = conn.execute(sa.text("SELECT min(id) FROM run")).scalar_one()
    make.add_samples(
        conn,
        "SELECT :run AS run, :metric AS metric, n AS seq, n AS value FROM generate_series(1, 3) n",
        {"run": run, "metric": make.METRIC},
    )
    assert (make.METRIC, first, 2, 5, 2.0) in means(conn)
    of = "(SELECT id FROM measured_metric WHERE metric = :m)"
    conn.execute(
        sa.text(f"UPDATE sample SET value = value * 2 WHERE measured IN {of}"), {"m": COUNTER}
    )
    assert (COUNTER, second, 2, 2, 12e9) in means(conn)
    other = make.a_run(conn, first, number=7, samples={make.METRIC: 9.0})
    assert (make.METRIC, first, 3, 6, 19 / 6) in [
        (*row[:4], pytest.approx(row[4])) for row in means(conn)
    ]
    conn.execute(
        sa.text(
            f"UPDATE sample SET run = :other, seq = seq + 1 WHERE run = :r AND measured IN {of}"
        ),
        {"other": other, "r": run, "m": make.METRIC},
    )
    assert (make.METRIC, first, 2, 6) in [row[:4] for row in means(conn)]
    conn.execute(sa.text("DELETE FROM sample WHERE run = :run"), {"run": run})
    assert (COUNTER, first, 1, 1) in [row[:4] for row in means(conn)]
    conn.execute(sa.text("DELETE FROM sample"))
    assert means(conn) == [] and read.list_metrics(conn) == []


def test_runs_that_are_read_again_have_new_means(conn: sa.Connection) -> None:
    first, _ = two_boots(conn)
    runs = PgTransaction(conn).runs
    old = runs.of_boot(first)[0]
    change = ChangedValues(old=(1.0,), new=(7.0, 9.0))
    parsed = ParsedRun(
        unit_job=old.unit_job,
        number=old.number,
        status="ok",
        seconds=old.seconds,
        samples={make.METRIC: [7.0, 9.0], COUNTER: [5e9]},
    )
    runs.replace(old, parsed, "a" * 64, {make.METRIC: change})
    assert (make.METRIC, first, 2, 3, 19 / 3) in [
        (*row[:4], pytest.approx(row[4])) for row in means(conn)
    ]


@contextmanager
def noted(engine: sa.Engine) -> Iterator[list[tuple[str, Any]]]:
    """The statements that are executed, with their parameters."""
    asked: list[tuple[str, Any]] = []

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


def relations(plan: Any) -> set[str]:
    """The tables and views that a plan reads."""
    if isinstance(plan, list):
        return set().union(*map(relations, plan))
    if not isinstance(plan, dict):
        return set()
    own = {plan["Relation Name"]} if "Relation Name" in plan else set()
    return own.union(*(relations(part) for part in plan.values()))


PLACE = {"tree": "mm-demo", "testbox": "vm-icount", "unit_job": make.UNIT_JOB}
OVER_HISTORY: dict[str, Callable[[sa.Connection], Any]] = {
    "metrics": lambda conn: read.list_metrics(conn, {"testbox": "vm-icount"}),
    "places of a metric": lambda conn: read.metric_places(
        conn, make.METRIC, unit_job=make.UNIT_JOB
    ),
    "names": lambda conn: read.known_names(conn, "vm-icount", f"a/b/{make.METRIC}"),
    "metric over commits": lambda conn: read.metric_history(conn, **PLACE, metric=make.METRIC),
    "a metric that is not there": lambda conn: refused(conn, "page-fault.x"),
    "plot of a report": lambda conn: read.history(conn, **PLACE, metric=make.METRIC),
    "panels": lambda conn: conn.execute(sa.text("SELECT * FROM v_metric_over_commits")).all(),
}


def refused(conn: sa.Connection, metric: str) -> None:
    with pytest.raises(NotFound, match="the nearest of its 2 metrics are"):
        read.metric_history(conn, **PLACE, metric=metric)


@pytest.mark.parametrize("name", OVER_HISTORY)
def test_what_looks_at_all_history_reads_no_samples(
    engine: sa.Engine, conn: sa.Connection, name: str
) -> None:
    two_boots(conn)
    with noted(engine) as asked:
        OVER_HISTORY[name](conn)
    read_tables = set()
    for statement, parameters in asked:
        explained = conn.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
        read_tables |= relations(explained.scalar_one())
    assert "measured_metric" in read_tables
    assert not read_tables & {"sample", "run"}


def a_comparison(conn: sa.Connection, runs: int) -> int:
    """Two boots a side; a value of the benchmark a boot, and `runs` values of each counter."""
    tree, testbox = make.a_tree(conn), make.a_testbox(conn)
    kernels = [make.a_kernel(conn, tree, n) for n in range(2)]
    number = make.a_comparison(conn, tree, kernels[0], kernels[1], [testbox], boots=2)
    counters = [f"perf-stat.c{n}" for n in range(5)]
    for kernel in kernels:
        for k in range(2):
            values = {make.METRIC: [1.0 + k], **{one: [float(k)] * runs for one in counters}}
            make.a_boot(conn, testbox, kernel, k=k, values=values, comparison=number)
    for metric in (make.METRIC, *counters):
        make.a_row(conn, number, testbox, metric)
    return number


def test_samples_of_a_comparison_are_chosen_by_their_metrics(conn: sa.Connection) -> None:
    number = a_comparison(conn, runs=3)
    own = read.samples_of_table(conn, number, ["page-fault.%"])
    assert {row["metric"] for row in own} == {make.METRIC} and len(own) == 4
    assert len(read.samples_of_table(conn, number)) == 4 + 4 * 5 * 3


def rows_of_a_page(url: str, place: Path, runs: int, address: str) -> int:
    """How many rows the database gives for a page of a comparison."""
    engine, count = make_engine(url), [0]

    def note(conn: Any, cursor: Any, *_: Any) -> None:
        count[0] += max(0, cursor.rowcount)

    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        number = a_comparison(conn, runs)
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(place)})
    client = TestClient(make_app(settings, engine, read, kept_by(ArtifactDirectory(place).open)))
    sa.event.listen(engine, "after_cursor_execute", note)
    answer = client.get(address.format(number))
    engine.dispose()
    assert answer.status_code == 200 and make.METRIC in answer.text
    return count[0]


@pytest.mark.parametrize(
    "address",
    [
        "/comparison/c{}",
        f"/plot/c{{}}/values.svg?metric={make.METRIC}&unit_job={make.UNIT_JOB}&testbox=vm-icount",
    ],
)
def test_a_page_of_a_comparison_does_not_read_every_value_of_every_counter(
    fresh_databases: Callable[[], str], tmp_path: Path, address: str
) -> None:
    few = rows_of_a_page(fresh_databases(), tmp_path, 1, address)
    many = rows_of_a_page(fresh_databases(), tmp_path, 9, address)
    assert few == many
