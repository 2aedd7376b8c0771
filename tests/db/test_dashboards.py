"""Every query of every dashboard runs as the role that Grafana has, with Grafana's macros put in:
on an empty database, on the scenario's lab, and on sixty days with two compilers, panics, a lost
testbox and patched kernels. Links are followed to the real pages."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

import pytest
import sqlalchemy as sa
import yaml
from starlette.testclient import TestClient

from swingbot.app.settings import load
from swingbot.app.web import service
from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import TestboxPhase
from swingbot_db import roles
from swingbot_db.engine import make_engine
from swingbot_jobs.contract.orders import BootOutcome, BuildStatus
from tests import scenario
from tests.board_lint import link_fields, links
from tests.dashboards import (
    FILES,
    ROOT,
    answered,
    ask,
    asked_all,
    dashboards,
    make_reader,
    queries,
    run,
)
from tests.database import fresh, own_server, own_template
from tests.postgres import Server
from tests.sixty_days import CLANG, DAYS, LEVELS, SWING_DAY, Past, sixty_days

# Roles belong to a whole server.
pg, template = own_server, own_template

START, END = timedelta(days=DAYS + 5), timedelta(minutes=1)
boards = pytest.mark.parametrize("dashboard", dashboards(), ids=lambda board: str(board["uid"]))
Answers = dict[str, tuple[str, list[str], list[Any]]]


class Aged:
    """A database of sixty days, with the reader's role."""

    def __init__(self, conn: sa.Connection, past: Past, url: str) -> None:
        self.conn, self.past, self.url = conn, past, url
        self.now = datetime.now(UTC)
        self._kept: dict[str, Answers] = {}

    def answers(self, dashboard: dict[str, Any], **chosen: str) -> Answers:
        """Of all queries over the sixty days; kept for the first visit, when nothing is chosen."""
        key = f"{dashboard['uid']} {chosen}"
        if key not in self._kept:
            self._kept[key] = asked_all(
                self.conn,
                dashboard,
                self.now - START,
                self.now + END,
                {name: [value] for name, value in chosen.items()},
            )
        return self._kept[key]


@pytest.fixture(scope="module")
def aged(pg: Server, template: str) -> Iterator[Aged]:
    with fresh(pg, template) as url:
        engine = make_engine(url)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            past = sixty_days(conn)
            make_reader(conn)
            conn.exec_driver_sql("ANALYZE")
            yield Aged(conn, past, url)
        engine.dispose()


def board_of(uid: str) -> dict[str, Any]:
    (found,) = (board for board in dashboards() if board["uid"] == uid)
    return found


@pytest.fixture
def lab(conn: sa.Connection) -> sa.Connection:
    """The scenario's lab, with the reader's role."""
    scenario.a_lab(conn)
    make_reader(conn)
    return conn


@boards
def test_every_query_runs_and_has_the_shape_its_panel_needs(
    aged: Aged, dashboard: dict[str, Any]
) -> None:
    for where, (form, columns, rows) in aged.answers(dashboard).items():
        if form in ("time_series", "annotation"):
            assert columns[0] == "time", where
        if form == "time_series":
            assert columns[1:] == ["metric", "value"], where
        if form == "annotation":
            assert columns == ["time", "text", "tags"], where
        assert rows, f"{where} shows nothing of a lab in which there is something to show"


@boards
def test_every_query_is_explained_and_reads_no_more_than_it_shows(
    aged: Aged, dashboard: dict[str, Any]
) -> None:
    def explained(conn: sa.Connection, sql: str) -> tuple[list[str], list[Any]]:
        (plan,) = run(conn, f"EXPLAIN (FORMAT JSON) {sql}")[1][0][0]
        assert plan["Plan"]["Total Cost"] < 1e6, sql
        return run(conn, sql)

    answers = answered(partial(explained, aged.conn), dashboard, aged.now - START, aged.now + END)
    assert answers.keys() == aged.answers(dashboard).keys()


@boards
def test_a_lab_without_anything_is_an_empty_board_and_no_error(
    conn: sa.Connection, dashboard: dict[str, Any]
) -> None:
    make_reader(conn)
    now = datetime.now(UTC)
    answers = asked_all(conn, dashboard, now - timedelta(days=30), now)
    tables = [where for where, (form, _, rows) in answers.items() if form == "table" and rows]
    titles = {
        f"panel {p['title']}" for p in dashboard["panels"] if p["type"] in ("stat", "bargauge")
    }
    assert set(tables) <= titles


def linked_pages(dashboard: dict[str, Any], answers: Answers) -> dict[str, str]:
    """Path of each page that a link of a panel leads to -> the panel."""
    found = {}
    for panel in dashboard["panels"]:
        form_columns_rows = answers.get(f"panel {panel['title']}")
        for address in links(panel):
            url = _with_variables(address, answers)
            fields = link_fields(url)
            _, columns, rows = form_columns_rows or ("", [], [])
            for row in rows if fields else [()]:
                path = url.replace("${web}", "")
                for field in fields:
                    value = row[columns.index(field)]
                    assert value, f"{panel['title']}: {field} is empty"
                    path = path.replace("${__data.fields." + field + "}", str(value))
                    encoded = quote(str(value), safe="")
                    path = path.replace("${__data.fields." + field + ":percentencode}", encoded)
                found[path] = panel["title"]
    return found


def _with_variables(url: str, answers: Answers) -> str:
    """A link to a page with the variables that the board chooses on the first visit."""
    chosen = re.compile(r"\$\{([a-z]\w*):percentencode\}")
    return chosen.sub(lambda m: quote(str(answers[f"variable {m[1]}"][2][0][0]), safe=""), url)


@boards
def test_no_link_is_broken(aged: Aged, dashboard: dict[str, Any], tmp_path: Path) -> None:
    """Those to pages answer; those to boards name a board and its variables."""
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(tmp_path), "SWINGBOT_DB_URL": aged.url})
    engine = make_engine(aged.url)
    boards = {board["uid"]: board for board in dashboards()}
    client = TestClient(service(settings, engine), base_url=settings.web_url)
    tried: dict[str, int] = {}
    for path, title in linked_pages(dashboard, aged.answers(dashboard)).items():
        if path.startswith("/d/"):
            uid, _, query = path.removeprefix("/d/").partition("?")
            names = {variable["name"] for variable in boards[uid]["templating"]["list"]}
            given = set(re.findall(r"var-(\w+)=", query))
            assert given <= names, (title, path)
            assert title != "What got worse" or "build" in given
            continue
        kind = path.split("/")[1]
        tried[kind] = tried.get(kind, 0) + 1
        if tried[kind] <= 5 and path not in ("/moderation",):
            assert client.get(path).status_code == 200, (title, path)
    engine.dispose()
    assert tried and (dashboard["uid"] != "swingbot-metric" or (tried["metric"] and tried["tree"]))


def test_one_line_is_one_compiler(aged: Aged) -> None:
    """A tip built by gcc and clang once drew a saw between both levels."""
    board = board_of("swingbot-metric")
    title = "panel Tips on ${testbox}, in % of the base"
    for build, tips in (("gcc, vm-x86_64", DAYS + 1), ("clang-19, vm-x86_64", 10)):
        _, columns, rows = aged.answers(board, build=build, testbox="vm-icount")[title]
        levels = [row[columns.index("tip")] for row in rows]
        assert tips - 3 <= len(levels) <= tips
        jumps = [abs(b - a) for a, b in pairwise(levels)]
        assert len([jump for jump in jumps if jump > 2]) == (1 if build.startswith("gcc") else 0)
    kernels = aged.answers(board, kernels="all")["panel Kernels"]
    kinds = {row[kernels[1].index("kind")] for row in kernels[2]}
    assert kinds == {"tip", "commit", "rebuilt", "patched"}


def test_a_change_of_six_per_cent_is_seen_on_the_first_visit(aged: Aged) -> None:
    """Whatever the levels of the testboxes: each has a panel, in per cent."""
    board = board_of("swingbot-metric")
    answers = aged.answers(board)
    (panel,) = (p for p in board["panels"] if p["title"].startswith("Tips on"))
    assert panel["repeat"] == "testbox"
    for testbox in LEVELS:
        _, columns, rows = aged.answers(board, testbox=testbox)[f"panel {panel['title']}"]
        tip, low, high = (columns.index(name) for name in ("tip", "low", "high"))
        levels = [row[tip] for row in rows]
        assert max(levels) - min(levels) < 10
        at = SWING_DAY - len(levels) + DAYS + 1
        assert 92 < levels[at + 2] / levels[at - 3] * 100 < 96
        assert all(row[low] <= row[tip] <= row[high] for row in rows)
    assert len({row[0] for row in answers["variable testbox"][2]}) == len(LEVELS)


def test_marks_tell_worse_from_better_and_lead_to_what_came_of_them(aged: Aged) -> None:
    answers = aged.answers(board_of("swingbot-metric"))
    text = {
        where: [row[1] for row in rows]
        for where, (form, _, rows) in answers.items()
        if form == "annotation"
    }
    (worse,) = text["annotation worse"]
    assert "/bisection/b2" in worse and "-6.0 % on bare1" in worse
    (known,) = text["annotation culprit known"]
    assert "/report/r1" in known and "culprit" in known
    assert len(text["annotation better"]) == len(LEVELS)
    assert len(text["annotation not bisected, known or refuted"]) == 1
    assert text["annotation releases"] == ["Linux 6.12-rc3"]


def test_compilers_are_compared_commit_by_commit(aged: Aged) -> None:
    board = board_of("swingbot-metric")
    chosen = {"testbox_a": "vm-icount", "testbox_b": "vm-icount", "build_a": "clang-19, vm-x86_64"}
    same = {"tree_a": "linux-next", "tree_b": "linux-next", "build_b": "gcc, vm-x86_64"}
    _, columns, rows = aged.answers(board, **chosen, **same)["panel A against B"]
    assert len(rows) >= 8
    for row in rows:
        entry = dict(zip(columns, row, strict=True))
        assert abs(entry["difference"] - 100 * (CLANG - 1)) < 1
        assert entry["low"] <= entry["difference"] <= entry["high"] < 0


def test_the_home_board_says_what_got_worse_and_through_whom(aged: Aged) -> None:
    answers = aged.answers(board_of("swingbot-swings"))

    def only(title: str) -> Any:
        return answers[f"panel {title}"][2][0][0]

    assert (only("Open swings"), only("Mails held"), only("Testboxes out of service")) == (2, 1, 2)
    assert only("Culprits") == 2
    assert only("Time to mail") == 6 * 3600
    _, columns, rows = answers["panel What got worse"]
    table = [dict(zip(columns, row, strict=True)) for row in rows]
    assert [round(row["change"], 1) for row in table] == [-6.0, -5.8, -1.4, -1.4]
    assert {(row["testbox"], row["state"], row["mail"]) for row in table[:2]} == {
        ("vm-icount", "explained", "sent"),
        ("bare1", "bisecting", "none"),
    }
    funnel = {row[0]: row[1] for row in answers["panel From tips to mails"][2]}
    assert list(funnel.values()) == sorted(funnel.values(), reverse=True)
    assert (funnel["seen"], funnel["mail sent"]) == (2 * DAYS, 1)


def test_the_lab_shows_each_testbox_with_its_reason(aged: Aged) -> None:
    _, columns, rows = aged.answers(board_of("swingbot-lab"))["panel Testboxes"]
    table = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
    assert table["bare1"]["condition"] == "lost"
    assert table["bare1"]["why"] == "no answer on port 22"
    assert table["bare2"]["condition"] == "quarantined"
    assert table["vm-icount"]["order"] != "none" and table["vm-icount"]["queued"] == 2
    assert 30 < table["vm-icount"]["noise"] < 200


def test_all_queries_together_count_their_rows(lab: sa.Connection) -> None:
    counts = ask(lab)
    assert len(counts) > 60
    assert sum(1 for rows in counts.values() if rows) > 40, counts


def test_the_annotation_marks_the_swing_of_the_chosen_metric_only(lab: sa.Connection) -> None:
    now = datetime.now(UTC)
    answers = asked_all(lab, board_of("swingbot-metric"), now - timedelta(days=30), now)
    marks = [
        rows
        for where, (form, _, rows) in answers.items()
        if form == "annotation" and where != "annotation releases"
    ]
    assert sum(map(len, marks)) == 1
    assert lab.exec_driver_sql("SELECT count(*) FROM v_swings").scalar_one() == 2


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
        first = dashboard["templating"]["list"][0]["name"]
        assert panel["datasource"]["uid"] == "${" + first + "}", panel["title"]
        assert first == ("prometheus" if dashboard["uid"] == "swingbot-service" else "datasource")
    for where, sql, _ in queries(dashboard):
        named = set(re.findall(r"(\w+) AS \(\n? *SELECT", sql))  # of a WITH
        tables = set(re.findall(r"\b(?:FROM|JOIN)\s+([\w.\"]+)", sql)) - named
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
    failures = series_colours(panels["Failures by reason"])
    assert set(failures) == outcomes - {"up"} | {"infra", "dead"}
    assert failures.items() <= activity.items()
    assert set(activity) == outcomes | {"running", "infra", "dead", "ended"}
    now = colours(panels["Testboxes"], "condition")
    phases = {phase.value for phase in TestboxPhase}
    assert set(now) == phases | set(get_args(TestboxState)) - {"active"}
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
    for file in [*FILES, *(ROOT / "dashboards/without-prometheus").iterdir()]:
        assert file.read_text() == normalise.text(json.loads(file.read_text())), (
            f"{file.name}: run `make dashboards`"
        )


def test_provisioning_names_the_data_source_that_dashboards_choose_and_holds_no_secret() -> None:
    document = yaml.safe_load(
        (ROOT / "dashboards/provisioning/datasources/swingbot.yaml").read_text()
    )
    source, alerts = document["datasources"]
    for one in (source, alerts):
        assert one["secureJsonData"]["password"] == "$SWINGBOT_GRAFANA_DB_PASSWORD"
        assert one["isDefault"] == (one is source)
    assert (alerts["uid"], alerts["user"]) == ("swingbot-alerts", roles.ALERTS)
    assert source["jsonData"] | {"maxOpenConns": 3, "maxIdleConns": 1} == alerts["jsonData"]
    for dashboard in dashboards():
        chosen = dashboard["templating"]["list"][0]
        if chosen["name"] == "datasource":
            assert (chosen["query"], chosen["current"]["value"]) == (source["type"], source["uid"])
    provider = yaml.safe_load(
        (ROOT / "dashboards/provisioning/dashboards/swingbot.yaml").read_text()
    )["providers"][0]
    assert provider["options"]["path"] == "$SWINGBOT_GRAFANA_DASHBOARDS"
