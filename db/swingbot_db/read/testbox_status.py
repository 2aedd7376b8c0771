"""State and history of testboxes, their controllers, screening progress, and alerts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from .rows import Row, rows, shown

_NOW = """
SELECT n.testbox, n.state, n.since, n.why, n.attempt, n.failures, n.hardware, n.screened_at,
  n.screening_boots, l.holder, l.until,
       (SELECT count(*) FROM boot b JOIN comparison_part p ON p.testbox = b.testbox
         JOIN comparison c ON c.id = p.comparison AND c.kind = 'anchor'
        AND b.series = 'c' || c.id WHERE b.testbox = n.testbox AND b.outcome = 'up'
          AND b.booted_at >= n.screening_since) AS anchor_boots
FROM testbox_now n LEFT JOIN lease l ON l.testbox = n.testbox WHERE n.testbox = ANY(:names)
"""
_EVENTS = """
SELECT e.at, e.was, e.state, e.why, e.attempt, a.order_id AS "order" FROM testbox_event e
  LEFT JOIN attempt a ON a.id = e.attempt
WHERE e.testbox = :name ORDER BY e.id DESC LIMIT :limit
"""
_ALERTS = """
SELECT a.kind, a.testbox, a.reason, a.began_at, a.ended_at, (SELECT min(r.id) FROM report r
  WHERE r.alert = a.id) AS report
FROM alert a WHERE {where} ORDER BY a.id DESC LIMIT 20
"""
_CONTROLLER = """
SELECT coalesce((SELECT holder FROM lease WHERE testbox = :name),
  (SELECT a.outcome ->> 'worker' FROM attempt a JOIN orders o ON o.id = a.order_id
   WHERE o.testbox = :name AND a.outcome ->> 'worker' IS NOT NULL ORDER BY a.id DESC LIMIT 1))
"""
_LEFT_OUT = """
SELECT n.testbox, r.unit_job, max(x.id) AS boot, (array_agg(r.reason ORDER BY r.id DESC))[1] AS why
FROM unnest(CAST(:names AS text[])) AS n (testbox)
CROSS JOIN LATERAL (SELECT id FROM boot WHERE testbox = n.testbox ORDER BY id DESC LIMIT 20) x
JOIN run r ON r.boot = x.id AND r.reason LIKE '%new metric names%'
GROUP BY 1, 2 ORDER BY 1, 2
"""
_TESTBOXES = "SELECT name, state, reason FROM testbox WHERE name = ANY(:names)"
# A testbox that no attempt ever used has no row yet: it is idle.
_NEVER = {
    "state": "idle",
    "since": None,
    "why": "",
    "attempt": None,
    "failures": 0,
    "holder": None,
    "until": None,
    "hardware": None,
    "screening": None,
}


def now(conn: sa.Connection, names: Iterable[str]) -> dict[str, Row]:
    """State of each testbox by name.

    Keys: "state", "since", "why", "attempt", "failures" in a row, "holder" and "until" of its
    lease, "hardware", "screening": {"boots", "of"} until its noise is known, else None.
    """
    testboxes = list(names)
    states = {row["testbox"]: _now(row) for row in rows(conn, _NOW, names=testboxes)}
    return {name: states.get(name) or dict(_NEVER) for name in testboxes}


def _now(row: Row) -> Row:
    screens = row["screening_boots"] > 0 and row["screened_at"] is None
    screening = {"boots": row["anchor_boots"], "of": row["screening_boots"]} if screens else None
    state = {
        key: row[key]
        for key in ("state", "since", "why", "failures", "holder", "until", "hardware")
    }
    return state | {"attempt": _attempt(row["attempt"]), "screening": screening}


def events(conn: sa.Connection, name: str, limit: int = 30) -> list[Row]:
    """Latest state changes, newest first: {"at", "was", "state", "why", "attempt", "order"}."""
    return [
        row | {"attempt": _attempt(row["attempt"]), "order": shown("order", row["order"])}
        for row in rows(conn, _EVENTS, name=name, limit=limit)
    ]


def alerts(conn: sa.Connection, name: str | None = None) -> list[Row]:
    """Alerts on a testbox, newest first; without a name, active alerts of the whole lab."""
    where = "a.ended_at IS NULL" if name is None else "a.testbox = :name"
    return [
        row | {"report": shown("report", row["report"])}
        for row in rows(conn, _ALERTS.format(where=where), **({"name": name} if name else {}))
    ]


def left_out(conn: sa.Connection, names: Iterable[str]) -> dict[str, list[str]]:
    """Monitors that its budget of metric names left out of the last boots of each testbox."""
    sentences: dict[str, list[str]] = {}
    for row in rows(conn, _LEFT_OUT, names=list(names)):
        sentences.setdefault(row["testbox"], []).append(
            f"{row['unit_job']} in boot {shown('boot', row['boot'])}: {row['why']};"
            " its raw results are kept"
        )
    return sentences


def controller(conn: sa.Connection, name: str) -> str | None:
    """Host that drives the testbox: the lease holder, else the host of its latest outcome.

    None before the first outcome.
    """
    host: str | None = conn.execute(sa.text(_CONTROLLER), {"name": name}).scalar()
    return host


def trouble(testbox: Row) -> str | None:
    """Why the orders of a testbox wait and what to do about it; None if they do not wait.

    `testbox` is its row (`name`, `state`, `reason`, `now`).
    """
    name, current = testbox["name"], testbox["now"]
    if testbox["state"] in ("quarantined", "drained"):
        reason = testbox["reason"] or "no reason given"
        return (
            f"testbox {name} is {testbox['state']}: {reason};"
            f" run `swingbot testbox resume {name}` when it is fit"
        )
    if testbox["state"] == "gone":
        return (
            f"testbox {name} no longer has a file in workers/testboxes; restore the file,"
            " or `swingbot cancel` the work that waits for it"
        )
    if current["state"] == "lost":
        return (
            f"testbox {name} is lost: {current['why']}; `swingbot testbox check {name}` says what"
            " it needs, and its next order returns it to its own system"
        )
    if current["screening"]:
        progress = current["screening"]
        return (
            f"testbox {name} is being screened for noise before its results count:"
            f" {progress['boots']} of {progress['of']} anchor boots are done, its other orders wait"
        )
    return None


def waits(
    conn: sa.Connection, orders: Iterable[Mapping[str, Any]], known: dict[str, str | None]
) -> list[str]:
    """A sentence for each testbox that is unfit and still has boots among these `orders`.

    `orders` have `testbox` (None: a build) and `state`. `known` keeps what `trouble` says of a
    testbox, so that a page asks once for each.
    """
    names = sorted(
        {order["testbox"] for order in orders if order["state"] in ("waiting", "ready")} - {None}
    )
    if missing := [name for name in names if name not in known]:
        testboxes = rows(conn, _TESTBOXES, names=missing)
        states = now(conn, missing)
        known |= {row["name"]: trouble(row | {"now": states[row["name"]]}) for row in testboxes}
    return [sentence for name in names if (sentence := known[name])]


def words(testbox: Row) -> str:
    """State of a testbox in a few words: `running`, `drained`, `idle, screening 3 of 10 boots`."""
    state, target = testbox["now"]["state"], testbox["state"]
    screening = testbox["now"]["screening"]
    text = (
        state
        if target in ("active", state)
        else target
        if state == "idle"
        else f"{target}, still {state}"
    )
    return (
        f"{text}, screening {screening['boots']} of {screening['of']} boots"
        if screening
        else str(text)
    )


def _attempt(number: int | None) -> str | None:
    return None if number is None else f"a{number}"
