"""The Literals of states, statuses, kinds and outcomes name what the schema and the contract
allow."""

from __future__ import annotations

import json
import re
from typing import Any, Final, get_args

import pytest
import sqlalchemy as sa

from swingbot.core.model import comparison_row, statuses
from swingbot.core.model.testbox_state import TestboxPhase
from swingbot_jobs.contract import orders
from swingbot_jobs.reading.result import RunStatus
from swingbot_worker.testbox.verdict import BootStatus


def values(literal: Any) -> set[str]:
    """The strings of a Literal, or of a union of Literals."""
    return {text for part in get_args(literal) for text in (get_args(part) or (part,))}


# Columns whose values the schema lists.
COLUMNS: Final[dict[tuple[str, str], set[str]]] = {
    ("orders", "kind"): values(orders.OrderKind),
    ("orders", "state"): values(statuses.OrderState),
    ("attempt", "state"): values(statuses.AttemptState),
    ("dispatch", "state"): values(statuses.DispatchState),
    ("change", "kind"): values(statuses.ChangeKind),
    ("variant", "origin"): values(statuses.VariantOrigin),
    ("bisection", "origin"): values(statuses.RequestOrigin),
    ("bisection", "status"): values(statuses.BisectionStatus),
    ("bisection_want", "phase"): values(statuses.Phase),
    ("bisection_steer", "act"): values(statuses.SteerAct),
    ("comparison", "kind"): values(statuses.ComparisonKind),
    ("comparison", "status"): values(statuses.ComparisonStatus),
    ("comparison_row", "verdict"): values(comparison_row.Verdict),
    ("swing", "direction"): values(statuses.Direction),
    ("swing", "state"): values(statuses.SwingState),
    ("swing", "source"): values(statuses.SwingSource),
    ("incident_gate", "status"): values(statuses.GateStatus),
    ("incident", "status"): values(statuses.IncidentStatus),
    ("incident_event", "act"): values(statuses.IncidentAct),
    ("report", "kind"): values(statuses.ReportKind),
    ("report", "state"): values(statuses.ReportState),
    ("moderation", "act"): values(statuses.ModerationAct),
    ("alert", "kind"): values(statuses.AlertKind),
    ("testbox", "state"): values(statuses.TestboxState),
    ("testbox_now", "state"): {state.value for state in TestboxPhase},
    ("kernel_build", "status"): values(orders.BuildStatus),
    ("boot", "outcome"): values(orders.BootOutcome),
    ("run", "status"): values(RunStatus),
}
_CHECK: Final = "\\(?\\(?{column} = ANY \\(\\(?ARRAY\\[([^]]*)\\]"


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_column_takes_what_its_literal_names(
    conn: sa.Connection, table: str, column: str
) -> None:
    checks = conn.execute(
        sa.text(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND "
            "conrelid = CAST('swingbot.' || :t AS regclass)"
        ),
        {"t": table},
    ).scalars()
    allowed = [
        set(re.findall(r"'([^']*)'", listed.group(1)))
        for check in checks
        if (listed := re.match(r"CHECK \(" + _CHECK.format(column=column), check))
    ]
    assert COLUMNS[table, column] in allowed, allowed


def test_the_contract_takes_what_its_literals_name() -> None:
    schema = json.loads((orders.SCHEMA_DIR / "outcome-1.schema.json").read_text())
    assert set(schema["properties"]["status"]["enum"]) == values(orders.OutcomeStatus)
    assert {status.value for status in BootStatus} == values(orders.BootOutcome) | {"limit"}
