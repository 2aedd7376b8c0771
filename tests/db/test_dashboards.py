"""Every query of every dashboard runs on a migrated database, as the role that Grafana has, with
Grafana's macros put in."""

from __future__ import annotations

import importlib.util
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
import sqlalchemy as sa
import yaml

from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import TestboxPhase
from swingbot_jobs.contract.orders import BootOutcome, BuildStatus
from tests import scenario
from tests.dashboards import FILES, ROOT, ask, asked_all, dashboards, make_reader, queries


@pytest.fixture
def lab(conn: sa.Connection) -> sa.Connection:
    """The scenario's lab, with the reader's role."""
    scenario.a_lab(conn)
    make_reader(conn)
    return conn


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda dashboard: str(dashboard["uid"]))
def test_every_query_runs_and_has_the_shape_its_panel_needs(
    lab: sa.Connection, dashboard: dict[str, Any]
) -> None:
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
        assert rows, f"{where} shows nothing of a lab in which there is something to show"


def test_all_queries_together_count_their_rows(lab: sa.Connection) -> None:
    counts = ask(lab)
    assert len(counts) > 25
    assert all(counts.values())


def test_the_annotation_marks_the_swing_of_the_chosen_metric_only(lab: sa.Connection) -> None:
    (dashboard,) = [found for found in dashboards() if found["uid"] == "swingbot-metric"]
    now = datetime.now(UTC)
    _, _, rows = asked_all(lab, dashboard, now - timedelta(days=30), now)["annotation swings"]
    assert rows
    assert len(rows) < lab.exec_driver_sql("SELECT count(*) FROM v_swings").scalar_one()


def test_nothing_of_before_the_time_range_is_shown(lab: sa.Connection) -> None:
    past = datetime.now(UTC) - timedelta(days=900)
    for dashboard in dashboards():
        answers = asked_all(lab, dashboard, past, past + timedelta(days=1))
        assert not [
            where
            for where, (form, _, rows) in answers.items()
            if form in ("time_series", "annotation") and rows
        ]


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda dashboard: str(dashboard["uid"]))
def test_every_panel_says_what_it_shows_in_which_unit_from_views_of_the_chosen_database(
    dashboard: dict[str, Any],
) -> None:
    for panel in dashboard["panels"]:
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
    for where, sql, _ in queries(dashboard):
        tables = re.findall(r"\b(?:FROM|JOIN)\s+([\w.\"]+)", sql)
        assert tables, where
        assert all(re.fullmatch(r"swingbot\.v_\w+", table) for table in tables), (where, tables)


def colours(panel: dict[str, Any], field: str | None = None) -> dict[str, str]:
    """Value of a status -> its colour, of the panel or of one of its fields."""
    properties = [
        (one["id"], one["value"])
        for override in panel["fieldConfig"]["overrides"]
        if override["matcher"]["options"] == field
        for one in override["properties"]
    ]
    defaults = panel["fieldConfig"]["defaults"]
    mappings = defaults.get("mappings", []) if field is None else dict(properties).get("mappings")
    return {
        value: shown["color"]
        for mapping in mappings or []
        for value, shown in mapping["options"].items()
    }


def series_colours(panel: dict[str, Any]) -> dict[str, str]:
    return {
        override["matcher"]["options"]: one["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
        for one in override["properties"]
        if one["id"] == "color"
    }


def test_a_number_has_thresholds_of_its_own() -> None:
    """Grafana's own turn 80 and more red, 100 % of boots that came up included."""
    for dashboard in dashboards():
        for panel in dashboard["panels"]:
            if panel["type"] in ("stat", "gauge"):
                assert panel["fieldConfig"]["defaults"].get("thresholds"), panel["title"]
    came_up = lab_panels()["Boots that came up"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert (came_up[0]["color"], came_up[-1]["color"]) == ("red", "green")


def lab_panels() -> dict[str, dict[str, Any]]:
    (board,) = (board for board in dashboards() if board["title"].endswith("Lab"))
    return {panel["title"]: panel for panel in board["panels"]}


def test_a_status_has_the_same_colour_everywhere_and_only_what_is_well_is_green() -> None:
    panels = lab_panels()
    outcomes, built = set(get_args(BootOutcome)), set(get_args(BuildStatus))
    boots, builds = series_colours(panels["Boots"]), series_colours(panels["Kernel builds"])
    activity = colours(panels["Testbox activity"])
    assert set(boots) == outcomes
    assert set(builds) == built | {"cached"}
    assert set(series_colours(panels["Kernel build time"])) == built
    assert set(activity) == outcomes | {"running", "infra", "dead", "ended"}
    now = colours(panels["Testboxes"], "now_state")
    assert set(now) == {phase.value for phase in TestboxPhase}
    assert set(colours(panels["Testboxes"], "state")) == set(get_args(TestboxState))
    assert {status: activity[status] for status in boots} == boots
    green = {name for name, colour in (boots | builds | activity).items() if "green" in colour}
    assert green == {"up", "built", "cached"}
    assert {name for name, colour in now.items() if colour == "red"} == {"lost", "quarantined"}


def test_a_lost_testbox_is_out_of_service(lab: sa.Connection) -> None:
    def out() -> int:
        sql = lab_panels()["Testboxes out of service"]["targets"][0]["rawSql"]
        return int(lab.execute(sa.text(sql)).scalar_one())

    before = out()
    name = lab.execute(
        sa.text(
            "SELECT testbox FROM v_testboxes WHERE state = 'active'"
            " AND now_state NOT IN ('lost', 'quarantined') LIMIT 1"
        )
    ).scalar_one()
    lab.execute(
        sa.text(
            "INSERT INTO testbox_now (testbox, state, why) VALUES (:name, 'lost', 'no answer')"
            " ON CONFLICT (testbox) DO UPDATE SET state = 'lost', why = 'no answer'"
        ),
        {"name": name},
    )
    assert out() == before + 1


def test_panels_do_not_overlap() -> None:
    for dashboard in dashboards():
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
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
        assert file.read_text() == normalise.text(json.loads(file.read_text())), (
            f"{file.name}: run `make dashboards`"
        )


def test_provisioning_names_the_data_source_that_dashboards_choose_and_holds_no_secret() -> None:
    document = yaml.safe_load(
        (ROOT / "dashboards/provisioning/datasources/swingbot.yaml").read_text()
    )
    (source,) = document["datasources"]
    assert source["secureJsonData"]["password"] == "$SWINGBOT_GRAFANA_DB_PASSWORD"
    for dashboard in dashboards():
        chosen = dashboard["templating"]["list"][0]
        assert (chosen["query"], chosen["current"]["value"]) == (source["type"], source["uid"])
    provider = yaml.safe_load(
        (ROOT / "dashboards/provisioning/dashboards/swingbot.yaml").read_text()
    )["providers"][0]
    assert provider["options"]["path"] == "$SWINGBOT_GRAFANA_DASHBOARDS"
