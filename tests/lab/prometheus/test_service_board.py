"""Every expression of the board Service in a real Prometheus that scrapes a real web service."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from swingbot.adapters.heartbeat import Heartbeat
from swingbot.adapters.part_heartbeat import PartHeartbeat
from swingbot.app.keep.health_check import beat_file
from tests.buildbot.lab import eventually
from tests.dashboards import dashboards
from tests.lab.prometheus.test_server import prometheus
from tests.promql import expand, expressions, variables
from tests.served import served

(BOARD,) = (board for board in dashboards() if board["uid"] == "swingbot-service")
CACHED = """UPDATE kernel_build SET cached = true
WHERE build_key = (SELECT min(build_key) FROM kernel_build)"""


def answered(port: int, path: str, **words: str) -> Any:
    """The data of an answer of Prometheus' API; its error fails the test."""
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        pytest.fail(f"{words}: {json.load(error)['error']}")


def test_every_panel_has_a_value_of_each_expression(db_url: str, tmp_path: Path) -> None:
    with served(db_url, tmp_path / "site") as site:
        Heartbeat(beat_file(site.settings)).beat()
        PartHeartbeat(site.settings.state, "smtpd").beat()
        site.conn.exec_driver_sql("UPDATE report SET state = 'queued'")
        site.conn.exec_driver_sql(
            "INSERT INTO testbox_now (testbox, state) VALUES ('rack7', 'idle')"
        )
        site.conn.exec_driver_sql(CACHED)
        site.conn.exec_driver_sql("UPDATE testbox SET state = 'quarantined' WHERE name = 'rack7'")
        site.conn.commit()
        site.client.get("/", headers={"x-long": "x" * 33_000})  # refused
        with prometheus(tmp_path / "prometheus", site.port) as port:
            eventually("it scrapes", partial(firing, port), 120)
            chosen = {}
            for name, selector, label in variables(BOARD):
                values = {"match[]": selector}
                chosen[name] = answered(port, f"label/{label}/values", **values)[0]
            assert chosen == {"instance": f"127.0.0.1:{site.port}"}
            for where, target in expressions(BOARD):
                expr = expand(target["expr"], chosen)
                eventually(f"{where}: {expr}", partial(value, port, expr), 120)


def value(port: int, expr: str) -> list[Any]:
    return list(answered(port, "query", query=expr)["result"])


def firing(port: int) -> list[Any]:
    return value(port, 'ALERTS{alertstate="firing"}') if ready(port) else []


def ready(port: int) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/-/ready", timeout=30):
            return True
    except OSError:
        return False
