"""Every rule of Grafana's asks what the database answers, as the role that Grafana has, and
finds what is wrong in a lab."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from tests import scenario
from tests.dashboards import ROOT, make_reader, run

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


def asked(conn: sa.Connection, uid: str) -> dict[str, float]:
    """What a rule's query gives: the name of each thing that is wrong, and its number."""
    columns, rows = run(conn, RULES[uid]["data"][0]["model"]["rawSql"])
    assert columns[1] == "value"
    return {str(name): float(value) for name, value in rows}


@pytest.mark.parametrize("uid", RULES)
def test_a_rule_is_a_query_of_the_provisioned_source_and_a_threshold_on_it(uid: str) -> None:
    source = yaml.safe_load(
        (ROOT / "dashboards" / "provisioning" / "datasources" / "swingbot.yaml").read_text()
    )["datasources"][0]["uid"]
    query, threshold = RULES[uid]["data"]
    assert (query["datasourceUid"], threshold["datasourceUid"]) == (source, "__expr__")
    assert (RULES[uid]["condition"], threshold["model"]["expression"]) == (
        threshold["refId"],
        query["refId"],
    )
    assert all(step["refId"] == step["model"]["refId"] for step in (query, threshold))
    assert RULES[uid]["noDataState"] == "OK"
    assert RULES[uid]["annotations"]["summary"].endswith(".")
    assert "$" not in str(RULES[uid])  # Grafana would put a variable in


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
    assert asked(lab, "swingbot-lab-faults") == dict.fromkeys(places, 1.0)


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
