"""Every rule of Grafana's asks what the database answers, as the role that Grafana has, and
finds what is wrong in a lab."""

from __future__ import annotations

import re
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from tests import scenario
from tests.dashboards import ROOT, dashboards, make_reader, run
from tests.database import own_server, own_template
from tests.sixty_days import sixty_days

# Roles belong to a whole server.
pg, template = own_server, own_template

(GROUP,) = yaml.safe_load(
    (ROOT / "dashboards" / "provisioning" / "alerting" / "swingbot.yaml").read_text()
)["groups"]
RULES: dict[str, dict[str, Any]] = {rule["uid"]: rule for rule in GROUP["rules"]}


@pytest.fixture
def lab(conn: sa.Connection) -> sa.Connection:
    """The scenario's lab, with the reader's role."""
    scenario.a_lab(conn)
    make_reader(conn)
    return conn


def labelled(conn: sa.Connection, uid: str) -> list[tuple[dict[str, Any], float]]:
    """The alerts of a rule: their labels and value, as Grafana makes them of a table."""
    columns, rows = run(conn, RULES[uid]["data"][0]["model"]["rawSql"])
    found = []
    for row in rows:
        labels = dict(zip(columns, row, strict=True))
        value = labels.pop("value")
        assert all(isinstance(label, str) for label in labels.values()), labels
        found.append((labels, float(value)))
    return found


def asked(conn: sa.Connection, uid: str) -> dict[str, float]:
    """The first label of each alert, and its value."""
    return {next(iter(labels.values())): value for labels, value in labelled(conn, uid)}


def summary(uid: str, labels: dict[str, Any], value: float) -> str:
    """The summary with its templates filled in, as Go would."""
    text = str(RULES[uid]["annotations"]["summary"])
    text = text.replace('{{ printf "%.1f" .Values.A.Value }}', f"{value:.1f}")
    text = re.sub(r"\{\{ \.Labels\.(\w+) \}\}", lambda match: str(labels[match[1]]), text)
    assert "{{" not in text, text
    return text.replace("http://127.0.0.1:8010", "https://pages")  # as write-boards does


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_is_a_query_of_the_alerts_own_source_and_a_threshold_on_it(uid: str) -> None:
    query, threshold = RULES[uid]["data"]
    assert (query["datasourceUid"], threshold["datasourceUid"]) == ("swingbot-alerts", "__expr__")
    assert (RULES[uid]["condition"], threshold["model"]["expression"]) == (
        threshold["refId"],
        query["refId"],
    )
    assert all(step["refId"] == step["model"]["refId"] for step in (query, threshold))
    assert RULES[uid]["noDataState"] == "OK"
    # Grafana would put variables of the environment in, but not into annotations
    assert "$" not in str(RULES[uid])


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_names_the_panel_that_shows_what_it_found(uid: str) -> None:
    annotations = RULES[uid]["annotations"]
    (board,) = (b for b in dashboards() if b["uid"] == annotations["__dashboardUid__"])
    (panel,) = (p for p in board["panels"] if str(p["id"]) == annotations["__panelId__"])
    views = set(re.findall(r"swingbot\.v_\w+", RULES[uid]["data"][0]["model"]["rawSql"]))
    shown = {view for t in panel["targets"] for view in re.findall(r"swingbot\.v_\w+", t["rawSql"])}
    assert views & shown, panel["title"]
    page, _, anchor = annotations["runbook"].partition("#")
    headings = re.findall(r"^##+ (.*)$", (ROOT / page).read_text(), re.M)
    assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_every_rule_fires_in_a_lab_where_all_is_wrong_and_says_where_to_look(
    conn: sa.Connection,
) -> None:
    past = sixty_days(conn)
    make_reader(conn)
    conn.exec_driver_sql("UPDATE tree SET polled_at = now() - interval '2 hours'")
    conn.exec_driver_sql(
        "UPDATE attempt SET state = 'dead', reason = 'no power', outcome = NULL,"
        " ended_at = now() WHERE id IN (SELECT id FROM attempt ORDER BY id DESC LIMIT 20)"
    )
    conn.exec_driver_sql("UPDATE comparison SET ended_at = now() WHERE kind = 'watch'")
    fired = {uid: labelled(conn, uid) for uid in RULES}
    conn.exec_driver_sql("UPDATE attempt SET ended_at = now() - interval '5 hours'")
    fired["swingbot-queue-stuck"] = labelled(conn, "swingbot-queue-stuck")
    for uid, alerts in fired.items():
        assert alerts, uid
        for labels, value in alerts:
            assert value > 0
            text = summary(uid, labels, value)
            assert re.search(r"https://pages/\S*$", text), text
            assert labels.get("testbox", "none") in ("none", *past.testboxes, "bare2"), text
    texts = {summary("swingbot-swing-open", *alert) for alert in fired["swingbot-swing-open"]}
    assert (
        "page-fault.per_process_ops on bare1 changed by -6.0 percent in linux-next (bisecting):"
        " https://pages/bisection/b2"
    ) in texts


def test_alerts_go_to_whom_the_environment_names() -> None:
    document = yaml.safe_load((ROOT / "dashboards/provisioning/alerting/notify.yaml").read_text())
    ((receiver,),) = [point["receivers"] for point in document["contactPoints"]]
    assert receiver["type"] == "$SWINGBOT_GRAFANA_ALERT_KIND"
    assert receiver["settings"]["addresses"] == "$SWINGBOT_GRAFANA_ALERT_TO"
    assert receiver["settings"]["url"] == "$SWINGBOT_GRAFANA_ALERT_TO"
    (policy,) = document["policies"]
    assert policy["receiver"] == document["contactPoints"][0]["name"]
    assert policy["group_by"] == ["alertname", "testbox"]


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_is_answered_to_the_reader(lab: sa.Connection, uid: str) -> None:
    assert all(value > 0 for value in asked(lab, uid).values())


def test_a_testbox_in_quarantine_is_reported_and_one_that_works_is_not(lab: sa.Connection) -> None:
    before = asked(lab, "swingbot-testbox-away")
    testbox = lab.exec_driver_sql(
        "SELECT name FROM testbox WHERE state NOT IN ('quarantined') ORDER BY name LIMIT 1"
    ).scalar_one()
    assert testbox not in before
    lab.exec_driver_sql(
        "UPDATE testbox SET state = 'quarantined', reason = 'it fell' WHERE name = %s", (testbox,)
    )
    assert testbox in asked(lab, "swingbot-testbox-away")


def test_attempts_that_the_lab_spoils_are_reported(lab: sa.Connection) -> None:
    lab.exec_driver_sql(
        "UPDATE attempt SET state = 'dead', reason = 'no power', outcome = NULL, ended_at = now()"
    )
    places = (
        lab.exec_driver_sql(
            "SELECT place FROM swingbot.v_attempts GROUP BY place HAVING count(*) >= 4"
        )
        .scalars()
        .all()
    )
    assert places
    assert asked(lab, "swingbot-lab-faults") == dict.fromkeys(places, 100.0)


def test_an_order_that_waits_while_nothing_ends_is_reported_once_it_is_old(
    lab: sa.Connection,
) -> None:
    lab.exec_driver_sql(
        "UPDATE attempt SET created_at = now() - interval '3 hours', ended_at = now() - "
        "interval '2 hours' WHERE ended_at IS NOT NULL"
    )
    assert asked(lab, "swingbot-queue-stuck") == {}
    changed = lab.exec_driver_sql(
        "UPDATE orders SET created_at = now() - interval '2 hours' WHERE state IN "
        "('ready', 'running')"
    ).rowcount
    assert changed > 0
    assert all(2 <= hours < 2.1 for hours in asked(lab, "swingbot-queue-stuck").values())
    assert asked(lab, "swingbot-queue-stuck")
