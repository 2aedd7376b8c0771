"""The lint of dashboards: each rule catches a board that breaks it, and ours break none."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.board_lint import columns, findings
from tests.dashboards import ROOT, dashboards

Json = dict[str, Any]


def panel(board: Json, title: str) -> Json:
    (found,) = (panel for panel in board["panels"] if panel["title"] == title)
    return dict(found)


def override(board: Json, title: str, name: str) -> list[Json]:
    """The properties of one column, to be changed in place."""
    (found,) = (
        one["properties"]
        for one in panel(board, title)["fieldConfig"]["overrides"]
        if one["matcher"]["options"] == name
    )
    return list(found)


def no_thresholds(board: Json) -> None:
    del panel(board, "Open swings")["fieldConfig"]["defaults"]["thresholds"]


def no_mapping(board: Json) -> None:
    fields = panel(board, "What got worse")["fieldConfig"]
    fields["overrides"] = [o for o in fields["overrides"] if o["matcher"]["options"] != "state"]


def too_wide(board: Json) -> None:
    panel(board, "Mails")["gridPos"]["w"] = 6


def cell_as_path(board: Json) -> None:
    panel(board, "Trees")["fieldConfig"]["defaults"]["links"] = [
        {"url": "${web}/tree/${__value.text}"}
    ]


def nullable_column(board: Json) -> None:
    panel(board, "Mails")["fieldConfig"]["defaults"]["links"] = [
        {"url": "${web}/report/${__data.fields.subject}"}
    ]


def absent_column(board: Json) -> None:
    panel(board, "Mails")["fieldConfig"]["defaults"]["links"] = [
        {"url": "${web}${__data.fields.boot_page}"}
    ]


def bare_parameter(board: Json) -> None:
    panel(board, "Mails")["fieldConfig"]["defaults"]["links"] = [
        {"url": "/d/swingbot-metric?var-metric=${__data.fields.subject}"}
    ]


def forgets_variables(board: Json) -> None:
    board["links"][0]["includeVars"] = False


def unknown_variable(board: Json) -> None:
    panel(board, "Mails")["targets"][0]["rawSql"] += " AND tree = ${tree:sqlstring}"


def other_kind(board: Json) -> None:
    board["templating"]["list"][1]["name"] = "tree"


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (no_thresholds, "a number without thresholds of its own"),
        (no_mapping, "column state has no value mappings"),
        (too_wide, "its columns need"),
        (cell_as_path, "is broken for an empty cell"),
        (nullable_column, "which may be empty"),
        (bare_parameter, "does not encode ${__data.fields.subject}"),
        (absent_column, "a column that the query does not have"),
        (forgets_variables, "forgets the chosen variables"),
        (unknown_variable, "${tree} is not a variable"),
        (other_kind, "variable tree is of another kind on swingbot-metric"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_rule_catches_a_board_that_breaks_it(breaks: Callable[[Json], None], words: str) -> None:
    boards = dashboards()
    (board,) = (deepcopy(board) for board in boards if board["uid"] == "swingbot-swings")
    breaks(board)
    assert any(words in fault for fault in findings(board, tuple(boards)))


def test_a_series_of_a_status_needs_colours() -> None:
    (board,) = (deepcopy(board) for board in dashboards() if board["uid"] == "swingbot-lab")
    panel(board, "Failures by reason")["fieldConfig"]["overrides"] = []
    assert any("series of a status without colours" in fault for fault in findings(board))


def bare_counter(board: Json) -> None:
    target = panel(board, "Boots")["targets"][0]
    target["expr"] = "sum by (outcome) (swingbot_boots_total)"


def no_legend(board: Json) -> None:
    panel(board, "Trees")["targets"][0]["legendFormat"] = ""


def no_colours(board: Json) -> None:
    panel(board, "Testboxes")["fieldConfig"]["overrides"] = []


def no_words(board: Json) -> None:
    del panel(board, "State of each part")["fieldConfig"]["defaults"]["mappings"]


def silent(board: Json) -> None:
    del panel(board, "Database")["fieldConfig"]["defaults"]["noValue"]


def another_source(board: Json) -> None:
    board["templating"]["list"][0]["name"] = "datasource"


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (bare_counter, "a counter without increase"),
        (no_legend, "has no legend"),
        (no_colours, "series of a status without colours"),
        (no_words, "a timeline of numbers without value mappings"),
        (silent, "blank without a word"),
        (another_source, "variable datasource is of another kind on swingbot-lab"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_rule_catches_a_board_over_prometheus_that_breaks_it(
    breaks: Callable[[Json], None], words: str
) -> None:
    boards = dashboards()
    (board,) = (deepcopy(board) for board in boards if board["uid"] == "swingbot-service")
    breaks(board)
    assert any(words in fault for fault in findings(board, tuple(boards)))


@pytest.mark.parametrize("board", dashboards(), ids=lambda board: str(board["uid"]))
def test_our_boards_break_no_rule(board: Json) -> None:
    assert findings(board, tuple(dashboards())) == []


def test_columns_are_read_from_the_outer_query() -> None:
    sql = (
        'WITH a AS (SELECT x AS y FROM t) SELECT DISTINCT ON (p) "time", f(a, b) AS c, r.d,'
        ' (SELECT max(z) FROM u) AS "order" FROM a UNION ALL SELECT 1, 2, 3, 4 FROM b'
    )
    assert columns(sql) == ["time", "c", "d", "order"]
    assert columns("SELECT $__timeGroupAlias(h.at, $__interval), n AS metric FROM x") == [
        "time",
        "metric",
    ]


def test_the_home_of_every_installation_is_the_board_of_swings() -> None:
    homes = {
        line.rpartition("/")[2].strip()
        for file in (
            ROOT / "docker-compose.yml",
            ROOT / "ansible/roles/swingbot_grafana/templates/grafana.env.j2",
        )
        for line in file.read_text().splitlines()
        if "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH" in line
    }
    assert homes == {"swings.json"}
    (home,) = (board for board in dashboards() if board["uid"] == "swingbot-swings")
    assert {link["type"] for link in home["links"]} == {"dashboards", "link"}
