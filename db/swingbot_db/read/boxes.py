"""What testboxes do and did, who holds them, how far their screening is, and what the operator was told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import sqlalchemy as sa

from .rows import Row, rows, shown

_NOW = """
SELECT n.testbox, n.state, n.since, n.why, n.attempt, n.failures, n.hardware, n.screened_at, n.screening_boots, l.holder, l.until,
       (SELECT count(*) FROM boot b JOIN comparison_part p ON p.testbox = b.testbox JOIN comparison c ON c.id = p.comparison AND c.kind = 'anchor'
        AND b.series = 'c' || c.id WHERE b.testbox = n.testbox AND b.outcome = 'up' AND b.booted_at >= n.screening_since) AS anchor_boots
FROM testbox_now n LEFT JOIN lease l ON l.testbox = n.testbox WHERE n.testbox = ANY(:names)
"""
_EVENTS = """
SELECT e.at, e.was, e.state, e.why, e.attempt, a.order_id AS "order" FROM testbox_event e LEFT JOIN attempt a ON a.id = e.attempt
WHERE e.testbox = :name ORDER BY e.id DESC LIMIT :limit
"""
_ALERTS = """
SELECT a.kind, a.testbox, a.reason, a.began_at, a.ended_at, (SELECT min(r.id) FROM report r WHERE r.alert = a.id) AS report
FROM alert a WHERE {where} ORDER BY a.id DESC LIMIT 20
"""
_CONTROLLER = """
SELECT coalesce((SELECT holder FROM lease WHERE testbox = :name),
  (SELECT a.outcome ->> 'worker' FROM attempt a JOIN orders o ON o.id = a.order_id
   WHERE o.testbox = :name AND a.outcome ->> 'worker' IS NOT NULL ORDER BY a.id DESC LIMIT 1))
"""
_WAITED_FOR = """
SELECT DISTINCT t.name, t.state, t.reason FROM want w JOIN orders o ON o.id = w.order_id JOIN testbox t ON t.name = o.testbox
WHERE {asker} = :id AND o.kind = 'boot' AND o.state IN ('waiting', 'ready') ORDER BY t.name
"""
# A box that no attempt ever moved has no row yet: it idles.
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
    """What each testbox does: {"state", "since", "why", "attempt", "failures" in a row, "holder" and "until" of its lease, "hardware",
    "screening": {"boots", "of"} until its noise is known, else None}."""
    wanted = list(names)
    found = {row["testbox"]: _now(row) for row in rows(conn, _NOW, names=wanted)}
    return {name: found.get(name) or dict(_NEVER) for name in wanted}


def _now(row: Row) -> Row:
    screens = row["screening_boots"] > 0 and row["screened_at"] is None
    screening = {"boots": row["anchor_boots"], "of": row["screening_boots"]} if screens else None
    kept = {
        key: row[key]
        for key in ("state", "since", "why", "failures", "holder", "until", "hardware")
    }
    return kept | {"attempt": _attempt(row["attempt"]), "screening": screening}


def events(conn: sa.Connection, name: str, limit: int = 30) -> list[Row]:
    """The last changes, the latest first: {"at", "was", "state", "why", "attempt", "order"}."""
    return [
        row | {"attempt": _attempt(row["attempt"]), "order": shown("order", row["order"])}
        for row in rows(conn, _EVENTS, name=name, limit=limit)
    ]


def alerts(conn: sa.Connection, name: str | None = None) -> list[Row]:
    """What the operator was told of a testbox, the latest first; without a name, what lasts now of the whole lab."""
    where = "a.ended_at IS NULL" if name is None else "a.testbox = :name"
    return [
        row | {"report": shown("report", row["report"])}
        for row in rows(conn, _ALERTS.format(where=where), **({"name": name} if name else {}))
    ]


def controller(conn: sa.Connection, name: str) -> str | None:
    """The host that drives the testbox: who holds it now, else whose outcome came last; None before the first."""
    found: str | None = conn.execute(sa.text(_CONTROLLER), {"name": name}).scalar()
    return found


def trouble(found: Row) -> str | None:
    """Why the orders of a testbox wait and what to do about it, from its row (`name`, `state`, `reason`, `now`); None if they do not."""
    name, said = found["name"], found["now"]
    if found["state"] in ("quarantined", "drained"):
        return f"testbox {name} is {found['state']}: {found['reason'] or 'no reason was given'}; `swingbot testbox resume {name}` when it is fit"
    if found["state"] == "gone":
        return f"testbox {name} has no file in workers/testboxes any more; put it back, or `swingbot cancel` what waits for it"
    if said["state"] == "lost":
        return f"testbox {name} is lost: {said['why']}; `swingbot testbox check {name}` says what it needs, and its next order brings it home"
    if said["screening"]:
        made = f"{said['screening']['boots']} of {said['screening']['of']} boots of its anchor are made"
        return f"testbox {name} shows its noise before it may vote: {made}, its other orders wait"
    return None


def waits(conn: sa.Connection, kind: Literal["comparison", "bisection"], number: int) -> list[str]:
    """A sentence for each testbox that is not fit for orders now though this comparison or bisection has boots to make there."""
    asked = rows(conn, _WAITED_FOR.format(asker=f"w.{kind}"), id=number)
    at = now(conn, [row["name"] for row in asked])
    return [said for row in asked if (said := trouble(row | {"now": at[row["name"]]}))]


def words(found: Row) -> str:
    """What a testbox does, in a few words, from its row: `running`, `drained`, `idle, screening 3 of 10 boots`."""
    state, wish, screening = found["now"]["state"], found["state"], found["now"]["screening"]
    said = (
        state
        if wish in ("active", state)
        else wish
        if state == "idle"
        else f"{wish}, still {state}"
    )
    return (
        f"{said}, screening {screening['boots']} of {screening['of']} boots"
        if screening
        else str(said)
    )


def _attempt(number: int | None) -> str | None:
    return None if number is None else f"a{number}"
