"""What pages, panels and the brain ask of samples, timed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import sqlalchemy as sa
from starlette.testclient import TestClient

from benchmarks.meter import Costs, Meter
from benchmarks.samples_world import BOOTS_OF_A_COMMIT, JOBS, TESTBOXES, TREE, World
from swingbot.app.web import service
from swingbot_db import read
from swingbot_db.engine import make_engine
from swingbot_db.store import PgTransaction
from tests import builders as make
from tests.dashboards import answered, dashboards, make_reader
from tests.dashboards import run as run_panel

SIDE_BOOTS = 10  # of the comparison that is read

Timed = dict[str, Any]


def a_compared_pair(world: World, metrics: list[str]) -> int:
    """A comparison of the first commit with the last one of its tree, with a row for each metric:
    dashboards and pages choose from what was compared.
    """
    known = sa.text("SELECT max(id) FROM comparison WHERE status = 'done'")
    with world.engine.begin() as conn:
        found = conn.execute(known).scalar()
        if found is not None:
            return int(found)
        testboxes = world.testboxes[: len(TESTBOXES)]
        number = make.a_comparison(
            conn,
            world.trees[0],
            world.commits[0],
            world.commits[(len(world.commits) - 1) // len(world.trees) * len(world.trees)],
            testboxes,
            boots=min(SIDE_BOOTS, BOOTS_OF_A_COMMIT) // len(TESTBOXES),
        )
        for testbox in testboxes:
            for job in JOBS:
                for metric in metrics:
                    make.a_row(conn, number, testbox, metric, unit_job=job)
        return number


def queries(compared: int, metric: str) -> dict[str, Callable[[sa.Connection], int]]:
    """Name -> a query that gives its number of rows."""
    chosen = {"tree": TREE, "testbox": TESTBOXES[0], "job": JOBS[0], "metric": metric}
    where = "WHERE tree = :tree AND testbox = :testbox AND unit_job = :job AND metric = :metric"

    def sql(text: str) -> Callable[[sa.Connection], int]:
        return lambda conn: len(conn.execute(sa.text(text), chosen).all())

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
            " (SELECT commit FROM variant ORDER BY id LIMIT 1)"
        ),
        "panel: boots of the lab (v_boots)": sql(
            'SELECT * FROM v_boots ORDER BY "time" DESC LIMIT 100'
        ),
        "all samples of a comparison": lambda conn: len(read.samples_of_table(conn, compared)),
        "raw: samples.csv of a comparison": lambda conn: sum(
            1 for _ in read.samples(conn, f"c{compared}")
        ),
        "raw: its first page": lambda conn: len([next(read.samples(conn, f"c{compared}"))]),
        "brain: boots for the noise records of a testbox": lambda conn: len(
            PgTransaction(conn).noise.measured_boots(TESTBOXES[0])
        ),
        "brain: values of a boot": lambda conn: len(PgTransaction(conn).boots.values(1)),
    }


def addresses(world: World, compared: int, metric: str) -> dict[str, str]:
    """Name -> the address of a page that reads samples."""
    with world.engine.connect() as conn:
        document = read.table(conn, compared)
    kernels = "&".join(f"kernel={arm['variant']['id']}" for arm in document["arms"])
    both = f"/results?tree={TREE}&{kernels}"
    testbox, job = TESTBOXES[0], JOBS[0]
    of_metric = f"unit_job={job.replace('%', '%25')}&metric={metric}"
    result = f"{job.replace('%', '%25')}/{metric}"
    return {
        "page: metrics": "/metrics",
        "page: metrics of a testbox": f"/metrics?testbox={testbox}",
        "page: where a metric is measured": f"/metric?{of_metric}",
        "page: the same on one testbox": f"/metric?testbox={testbox}&{of_metric}",
        "page: a metric over commits": f"/metric/{TREE}/{testbox}/{result}",
        "page: a metric that is not there": f"/metric/{TREE}/{testbox}/{result}x",
        "page: a comparison": f"/comparison/c{compared}",
        "page: a plot of it": f"/plot/c{compared}/values.svg?testbox={testbox}&{of_metric}",
        "page: its table as text": f"/comparison/c{compared}/lkp.txt",
        "page: results of two kernels": both,
        "page: the same, all counters": f"{both}&metric=.",
        "page: kernels with results": f"/results?tree={TREE}",
        "page: a boot": "/boot/x1",
        "page: a testbox": f"/testbox/{testbox}",
        "page: a tree": f"/tree/{TREE}",
        "page: overview": "/",
        "page: raw files of a comparison": f"/raw/c{compared}/",
    }


@contextmanager
def _client(world: World) -> Iterator[TestClient]:
    """The web service with all its pages, and connections of its own."""
    engine = make_engine(world.engine.url)
    try:
        app = service(world.settings, engine)
        with TestClient(app, base_url=world.settings.web_url) as client:
            client.headers["accept"] = "text/html"  # /metrics is for Prometheus otherwise
            yield client
    finally:
        engine.dispose()


def _asked(client: TestClient, address: str) -> int:
    answer = client.get(address)
    if answer.status_code not in (200, 404):
        raise RuntimeError(f"{address}: {answer.status_code} {answer.text[:200]}")
    return len(answer.content)


def timed(world: World, metric: str, metrics: list[str], again: int) -> list[Timed]:
    """Costs of each query and page. A query that needs over a minute has none.

    `rows` are bytes for a page.
    """
    compared, meter, table = a_compared_pair(world, metrics), Meter(world.engine), []
    try:
        for name, ask in queries(compared, metric).items():
            with world.engine.connect() as conn:
                conn.execute(sa.text("SET statement_timeout = '60s'"))
                table.append(meter.repeat(partial(ask, conn), again).facts(name))
                conn.rollback()
        with _client(world) as client:
            for name, address in addresses(world, compared, metric).items():
                table.append(meter.repeat(partial(_asked, client, address), again).facts(name))
    finally:
        meter.close()
    return table


def _timed_panel(
    conn: sa.Connection, meter: Meter, board: str, costs: dict[str, Costs], sql: str
) -> tuple[list[str], list[Any]]:
    answer: list[tuple[list[str], list[Any]]] = []

    def question() -> int:
        answer.append(run_panel(conn, sql))
        return len(answer[0][1])

    meter.ask(costs[f"{board}: {' '.join(sql.split())[:120]}"], question)
    return answer[0]


def panels(engine: sa.Engine, again: int) -> list[Timed]:
    """Every query of every dashboard over three years, as Grafana asks at a viewer's first visit,
    asked `1 + again` times; the slowest first.
    """
    now, costs, meter = datetime.now(UTC), defaultdict[str, Costs](Costs), Meter(engine)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        make_reader(conn)
        for dashboard in dashboards():
            for _ in range(1 + again):
                answered(
                    partial(_timed_panel, conn, meter, dashboard["uid"], costs),
                    dashboard,
                    now - timedelta(days=3 * 365),
                    now + timedelta(minutes=1),
                )
    meter.close()
    table = [each.facts(name) for name, each in costs.items()]
    return sorted(table, key=lambda row: -row["p95_ms"])
