"""Every query of every dashboard runs on a migrated database, as the role that Grafana has, with Grafana's macros put in."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from swingbot_db.engine import make_engine
from tests import scenario

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "dashboards" / "json").glob("*.json"))
HOUR = 3600


def dashboards() -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in FILES]


def queries(dashboard: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(where it stands, SQL, format) of all variables, annotations and panels, in the order in which Grafana needs them."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"], "variable"
    for annotation in dashboard["annotations"]["list"]:
        yield f"annotation {annotation['name']}", annotation["target"]["rawSql"], "annotation"
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']}", target["rawSql"], target["format"]


def _seconds(interval: str) -> int:
    number, unit = re.fullmatch(r"'?(\d+)([smhd])'?", interval.strip()).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60, "h": HOUR, "d": 24 * HOUR}[unit]


def expand(sql: str, variables: dict[str, list[str]], start: datetime, end: datetime, interval: str = "1h") -> str:
    """Grafana's macros and variables as its PostgreSQL data source puts them in. Fails on one that it does not know."""

    def quoted(match: re.Match[str]) -> str:
        return ",".join("'" + value.replace("'", "''") + "'" for value in variables[match[1]])

    def group(match: re.Match[str]) -> str:
        seconds = _seconds(match[2])
        bucket = f"floor(extract(epoch from {match[1]})/{seconds})*{seconds}"
        return f'{bucket} AS "time"' if match[0].startswith("$__timeGroupAlias") else bucket

    times = (f"'{start:%Y-%m-%dT%H:%M:%SZ}'", f"'{end:%Y-%m-%dT%H:%M:%SZ}'")
    sql = re.sub(r"\$__interval\b", interval, sql)
    sql = re.sub(r"\$__timeFilter\(([^)]*)\)", lambda match: f"{match[1]} BETWEEN {times[0]} AND {times[1]}", sql)
    sql = sql.replace("$__timeFrom()", times[0]).replace("$__timeTo()", times[1])
    sql = re.sub(r"\$__timeGroup(?:Alias)?\(([^,)]*),([^,)]*)\)", group, sql)
    sql = re.sub(r"\$\{(\w+):sqlstring\}", quoted, sql)
    assert "$" not in sql, f"an unknown macro or variable: {sql[sql.index('$') :][:40]}"
    return sql


def run(conn: sa.Connection, sql: str) -> tuple[list[str], list[Any]]:
    conn.exec_driver_sql("SET ROLE swingbot_reader")
    try:
        result = conn.exec_driver_sql(sql.replace("%", "%%"))
        return list(result.keys()), list(result)
    finally:
        conn.exec_driver_sql("RESET ROLE")


def asked_all(conn: sa.Connection, dashboard: dict[str, Any], start: datetime, end: datetime) -> dict[str, tuple[str, list[str], list[Any]]]:
    """Where -> format, columns and rows of every query; each variable takes what its own query gives, as a viewer's first look does."""
    variables: dict[str, list[str]] = {}
    multi = {variable["name"]: variable.get("multi", False) for variable in dashboard["templating"]["list"]}
    answers = {}
    for where, sql, form in queries(dashboard):
        columns, rows = run(conn, expand(sql, variables, start, end))
        if form == "variable":
            name = where.removeprefix("variable ")
            variables[name] = [str(row[0]) for row in rows] if multi[name] else [str(row[0]) for row in rows][:1]
        answers[where] = (form, columns, rows)
    return answers


@pytest.fixture
def lab(conn: sa.Connection) -> Iterator[sa.Connection]:
    """The scenario's lab, or the database of a real run named by SWINGBOT_DEMO_DB_URL; both with the reader's role."""
    role = (ROOT / "db" / "reader-role.sql").read_text().replace("%", "%%")
    if url := os.environ.get("SWINGBOT_DEMO_DB_URL"):
        with make_engine(url).connect().execution_options(isolation_level="AUTOCOMMIT") as demo:
            demo.exec_driver_sql(role)
            yield demo
        return
    scenario.a_lab(conn)
    conn.exec_driver_sql(role)
    yield conn


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda dashboard: str(dashboard["uid"]))
def test_every_query_runs_and_has_the_shape_its_panel_needs(lab: sa.Connection, dashboard: dict[str, Any]) -> None:
    now = datetime.now(UTC)
    answers = asked_all(lab, dashboard, now - timedelta(days=30), now + timedelta(minutes=1))
    assert len(answers) >= 10
    for where, (form, columns, rows) in answers.items():
        if form in ("time_series", "annotation"):
            assert columns[0] == "time", where
        if form == "time_series":
            assert columns[1:] == ["metric", "value"], where
        if form == "annotation":
            assert columns == ["time", "text", "tags"], where
        if "SWINGBOT_DEMO_DB_URL" not in os.environ:
            assert rows, f"{where} shows nothing of a lab in which there is something to show"


def test_the_annotation_marks_the_swing_of_the_chosen_metric_only(lab: sa.Connection) -> None:
    (dashboard,) = [found for found in dashboards() if found["uid"] == "swingbot-metric"]
    now = datetime.now(UTC)
    _, _, rows = asked_all(lab, dashboard, now - timedelta(days=30), now)["annotation swings"]
    assert rows
    assert len(rows) < lab.exec_driver_sql("SELECT count(*) FROM v_swings").scalar_one() or "SWINGBOT_DEMO_DB_URL" in os.environ


def test_nothing_of_before_the_time_range_is_shown(lab: sa.Connection) -> None:
    past = datetime.now(UTC) - timedelta(days=900)
    for dashboard in dashboards():
        answers = asked_all(lab, dashboard, past, past + timedelta(days=1))
        assert not [where for where, (form, _, rows) in answers.items() if form in ("time_series", "annotation") and rows]


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda dashboard: str(dashboard["uid"]))
def test_every_panel_says_what_it_shows_in_which_unit_from_views_of_the_chosen_database(dashboard: dict[str, Any]) -> None:
    for panel in dashboard["panels"]:
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
    for where, sql, _ in queries(dashboard):
        tables = re.findall(r"\b(?:FROM|JOIN)\s+([\w.\"]+)", sql)
        assert tables, where
        assert all(re.fullmatch(r"swingbot\.v_\w+", table) for table in tables), (where, tables)


def test_panels_do_not_overlap() -> None:
    for dashboard in dashboards():
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            assert not cells & taken, panel["title"]
            assert place["x"] + place["w"] <= 24
            taken |= cells


def test_dashboards_are_in_normal_form() -> None:
    spec = importlib.util.spec_from_file_location("normalise", ROOT / "dashboards" / "normalise.py")
    assert spec is not None
    assert spec.loader is not None
    normalise = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(normalise)
    for file in FILES:
        assert file.read_text() == normalise.text(json.loads(file.read_text())), f"{file.name}: run `make dashboards`"


def test_provisioning_names_the_data_source_that_dashboards_choose_and_holds_no_secret() -> None:
    document = yaml.safe_load((ROOT / "dashboards/provisioning/datasources/swingbot.yaml").read_text())
    (source,) = document["datasources"]
    assert source["secureJsonData"]["password"] == "$SWINGBOT_GRAFANA_DB_PASSWORD"
    for dashboard in dashboards():
        chosen = dashboard["templating"]["list"][0]
        assert (chosen["query"], chosen["current"]["value"]) == (source["type"], source["uid"])
    provider = yaml.safe_load((ROOT / "dashboards/provisioning/dashboards/swingbot.yaml").read_text())["providers"][0]
    assert provider["options"]["path"] == "$SWINGBOT_GRAFANA_DASHBOARDS"
