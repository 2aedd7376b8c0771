"""What pages, panels and the brain ask of samples, timed."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa

from benchmarks.samples_world import BOOTS_OF_A_COMMIT, JOBS, TESTBOXES, TREE, World
from swingbot_db import read
from swingbot_db.store import PgTransaction
from tests import builders as make
from tests.dashboards import answered, dashboards, make_reader
from tests.dashboards import run as run_panel

SIDE_BOOTS = 10  # of the comparison that is read

Timed = dict[str, Any]


def queries(world: World, metric: str) -> dict[str, Callable[[sa.Connection], int]]:
    """Name -> a query that gives its number of rows."""
    chosen = {"tree": TREE, "testbox": TESTBOXES[0], "job": JOBS[0], "metric": metric}
    where = "WHERE tree = :tree AND testbox = :testbox AND unit_job = :job AND metric = :metric"

    def sql(text: str) -> Callable[[sa.Connection], int]:
        return lambda conn: len(conn.execute(sa.text(text), chosen).all())

    with world.engine.begin() as conn:
        boots = SIDE_BOOTS // 2
        compared = make.a_comparison(
            conn,
            world.trees[0],
            world.commits[0],
            world.commits[(len(world.commits) - 1) // len(world.trees) * len(world.trees)],
            world.testboxes[: len(TESTBOXES)],
            boots=min(boots, BOOTS_OF_A_COMMIT // len(TESTBOXES)),
        )
    return {
        "panel: metric over commits (v_metric_over_commits)": sql(
            f'SELECT "time", mean, stddev FROM v_metric_over_commits {where} ORDER BY 1'
        ),
        "panel: the same, 30 days of it": sql(
            f'SELECT "time", mean FROM v_metric_over_commits {where} AND "time" > timestamptz'
            " '2026-03-02' - interval '30 days' ORDER BY 1"
        ),
        "panel: every boot of it (v_boot_metrics)": sql(
            f'SELECT "time", mean FROM v_boot_metrics {where} ORDER BY 1'
        ),
        "panel: one commit, all metrics (v_boot_metrics)": sql(
            "SELECT metric, mean FROM v_boot_metrics WHERE tree = :tree AND commit ="
            f" '{world.commits[0].commit}'"
        ),
        "panel: boots of the lab (v_boots)": sql(
            'SELECT * FROM v_boots ORDER BY "time" DESC LIMIT 100'
        ),
        "page: a boot": lambda conn: len(read.boot(conn, "x1")["runs"]),
        "page: samples of a comparison": lambda conn: len(
            read.samples_of_comparison(conn, compared)
        ),
        "raw: samples.csv of a comparison": lambda conn: sum(
            1 for _ in read.samples(conn, f"c{compared}")
        ),
        "page: result roots": lambda conn: len(read.result_children(conn, ("hackbench",))),
        "brain: boots for the noise records of a testbox": lambda conn: len(
            PgTransaction(conn).noise.measured_boots(TESTBOXES[0])
        ),
        "brain: values of a boot": lambda conn: len(PgTransaction(conn).boots.values(1)),
    }


def timed(world: World, metric: str, again: int) -> list[Timed]:
    """First time and the median of the next ones, in ms.

    A query that needs over a minute is given up and has no time.
    """
    table = []
    for name, ask in queries(world, metric).items():
        times, rows = [], 0
        try:
            for _ in range(1 + again):
                with world.engine.connect() as conn:
                    conn.execute(sa.text("SET statement_timeout = '60s'"))
                    began = time.perf_counter()
                    rows = ask(conn)
                    times.append(1000 * (time.perf_counter() - began))
        except sa.exc.OperationalError:
            times = []
        table.append(
            {
                "query": name,
                "rows": rows,
                "first_ms": times[0] if times else None,
                "median_ms": statistics.median(times[1:]) if times else None,
            }
        )
    return table


def _timed_panel(
    conn: sa.Connection, board: str, times: dict[str, list[float]], sql: str
) -> tuple[list[str], list[Any]]:
    began = time.perf_counter()
    found = run_panel(conn, sql)
    words = " ".join(sql.split())
    times[f"{board}: {words[:120]}"].append(1000 * (time.perf_counter() - began))
    return found


def panels(engine: sa.Engine, again: int) -> list[Timed]:
    """Every query of every dashboard over three years, as Grafana asks at a viewer's first visit:
    the slowest of `1 + again` times and their median, in ms, slowest first.
    """
    now, times = datetime.now(UTC), defaultdict[str, list[float]](list)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        make_reader(conn)
        for dashboard in dashboards():
            for _ in range(1 + again):
                answered(
                    partial(_timed_panel, conn, dashboard["uid"], times),
                    dashboard,
                    now - timedelta(days=3 * 365),
                    now + timedelta(minutes=1),
                )
    table = [
        {"query": name, "n": len(each), "median_ms": statistics.median(each), "max_ms": max(each)}
        for name, each in times.items()
    ]
    return sorted(table, key=lambda row: -row["max_ms"])
