"""The board Service asks for nothing that /metrics does not have.

Expressions are run by a real Prometheus in tests/lab/prometheus/.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import sqlalchemy as sa
import yaml

from swingbot.adapters.heartbeat import Heartbeat
from swingbot.adapters.part_heartbeat import PartHeartbeat
from swingbot.app.keep.health_check import beat_file
from swingbot.app.settings import load
from swingbot.core.model.statuses import ReportState
from swingbot.core.model.testbox_state import TestboxPhase
from tests.dashboards import ROOT, dashboards
from tests.fakes.scrape import scraped
from tests.promql import SCRAPED, expressions, grouped, selectors, variables
from tests.scenario import a_lab

(BOARD,) = (board for board in dashboards() if board["uid"] == "swingbot-service")
EXPRESSIONS = dict(expressions(BOARD))
WITHOUT = json.loads((ROOT / "dashboards/without-prometheus/service.json").read_text())


@pytest.fixture
def labels(tmp_path: Path, engine: sa.Engine, conn: sa.Connection) -> dict[str, set[str]]:
    """Name of each metric of a lab in which every one has a value -> names of its labels."""
    a_lab(conn)
    conn.exec_driver_sql("UPDATE report SET state = 'queued'")
    conn.exec_driver_sql("INSERT INTO testbox_now (testbox, state) VALUES ('vm-icount', 'idle')")
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path)})
    Heartbeat(beat_file(settings)).beat()
    PartHeartbeat(settings.state, "smtpd").beat()
    _, body = scraped(settings, engine)
    found: dict[str, set[str]] = {}
    for line in body.splitlines():
        if not line.startswith("#"):
            match = re.match(r"(\w+)(?:\{(.*)\})? ", line)
            assert match is not None, line
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return found


def test_every_expression_names_metrics_and_labels_that_the_service_reports(
    labels: dict[str, set[str]],
) -> None:
    known = labels | {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
    known = {name: own | SCRAPED for name, own in known.items()}
    known["ALERTS"] |= {label for own in labels.values() for label in own}
    asked = [(where, target["expr"]) for where, target in EXPRESSIONS.items()]
    asked += [(name, selector) for name, selector, _ in variables(BOARD)]
    assert len(asked) > 25
    for where, expr in asked:
        named = selectors(expr)
        assert named, where
        for name, matched in named:
            assert name in known, (where, name)
            assert matched <= known[name], (where, name, matched)
        assert grouped(expr) <= set().union(*(known[name] for name, _ in named)), where


def test_series_are_named_by_labels_that_they_keep() -> None:
    for where, target in EXPRESSIONS.items():
        shown = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
        assert shown <= grouped(target["expr"]), where


def test_every_expression_is_of_the_chosen_service() -> None:
    for where, target in EXPRESSIONS.items():
        for name, matched in selectors(target["expr"]):
            assert name == "ALERTS" or "instance" in matched, (where, name)


def coloured(title: str) -> set[str]:
    (panel,) = (panel for panel in BOARD["panels"] if panel["title"] == title)
    return {one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"]}


def test_every_phase_and_state_has_a_colour_of_its_own() -> None:
    assert coloured("Testboxes") == {phase.value for phase in TestboxPhase}
    assert coloured("Mails") == set(get_args(ReportState)) - {"sent", "dropped"}


def test_limits_are_those_of_the_alert_rules() -> None:
    """A number turns red when its rule fires."""
    rules = yaml.safe_load((ROOT / "dashboards/prometheus/alerts.yml").read_text())
    text = {rule["alert"]: rule["expr"] for rule in rules["groups"][0]["rules"]}
    assert "> 600" in text["SwingbotLoopDead"]
    assert "> 3 * 3600" in text["SwingbotMailStuck"]
    assert "< 5 * " in text["SwingbotDiskLow"]
    assert "> 0.1" in text["SwingbotInvalidRuns"]
    for title, limit in (
        ("Last round of the loop", 600),
        ("Loop", 600),
        ("Oldest mail to send", 3 * 3600),
        ("Disk, times the stop level", 5),
        ("Invalid runs", 0.1),
    ):
        (panel,) = (panel for panel in BOARD["panels"] if panel["title"] == title)
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[-1]["value"] == limit, title


def test_without_a_prometheus_the_board_says_so_and_asks_nothing() -> None:
    assert (WITHOUT["uid"], WITHOUT["title"]) == (BOARD["uid"], BOARD["title"])
    (panel,) = WITHOUT["panels"]
    words: dict[str, Any] = panel["options"]
    assert "No Prometheus is configured" in words["content"]
    assert "SWINGBOT_GRAFANA_PROMETHEUS" in words["content"]
    assert not list(expressions(WITHOUT))
    assert [variable["name"] for variable in WITHOUT["templating"]["list"]] == ["web"]


def test_the_board_reads_the_source_that_is_provisioned() -> None:
    file = ROOT / "dashboards/provisioning/datasources/prometheus.yaml"
    (source,) = yaml.safe_load(file.read_text())["datasources"]
    assert source["url"] == "$SWINGBOT_GRAFANA_PROMETHEUS"
    assert not source["isDefault"]
    chosen = BOARD["templating"]["list"][0]
    assert (chosen["query"], chosen["current"]["value"]) == (source["type"], source["uid"])
