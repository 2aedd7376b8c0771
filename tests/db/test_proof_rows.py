"""The table of gates: what it refuses, and what is written twice."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from swingbot.core.proof.gates import GateRow
from swingbot_db import read
from swingbot_db.store import PgTransaction
from tests import builders as make


def an_incident(conn: sa.Connection) -> int:
    tree = make.a_tree(conn)
    add = "INSERT INTO incident (tree, culprit) VALUES (:tree, :culprit) RETURNING id"
    return int(
        conn.execute(
            sa.text(add), {"tree": tree, "culprit": make.a_kernel(conn, tree, 0).variant}
        ).scalar_one()
    )


@pytest.mark.parametrize(
    "gate",
    [
        GateRow(gate="tip", status="not run"),  # without a reason
        GateRow(gate="tip; DROP", status="pass"),
        GateRow(gate="tip", status="pass", tries=0),
        GateRow(gate="tip", status="perhaps"),  # type: ignore[arg-type]  # as a damaged program might
    ],
)
def test_gates_that_make_no_sense_are_refused(conn: sa.Connection, gate: GateRow) -> None:
    incident = an_incident(conn)
    with pytest.raises(sa.exc.IntegrityError):
        PgTransaction(conn).gates.put(incident, gate)


def test_a_gate_is_one_row_however_often_it_is_asked_for(conn: sa.Connection) -> None:
    store, incident = PgTransaction(conn), an_incident(conn)
    for tries, status in ((1, "running"), (1, "fail"), (2, "running"), (2, "pass")):
        store.gates.put(
            incident,
            GateRow(
                gate="tip",
                status=status,  # type: ignore[arg-type]
                reason="why",
                tries=tries,
                foreseen={"builds": 1, "boots": 6, "seconds": 30.0},
            ),
        )
    (gate,) = store.gates.of_incident(incident)
    assert (gate.status, gate.tries) == ("pass", 2)
    assert store.gates.open_incidents() == []
    (shown,) = read.gates(conn, f"i{incident}")
    assert shown["question"] == "is it still there at the tip of the branch?"
    assert shown["foreseen"] and shown["foreseen"]["boots"] == 6
    assert shown["boots"] == {"base": [], "head": []}
    assert shown["decided_at"] is not None
