"""Attempts and dispatches, for the artifact exchange and the Buildbot dispatcher.

Functions take an open connection and leave the commit to the caller. `AttemptTransactions` bundles
them, with one transaction each, for callers without SQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import sqlalchemy as sa

from swingbot.core.access.uploads import UploadLimits, UploadUsage
from swingbot.core.model.dispatch import DatabaseAway, Delivery, OpenDispatch, OrderFacts
from swingbot.core.model.records import WorkerCompiler
from swingbot.core.model.testbox_state import LeaseHeld, LeaseRefused
from swingbot_db import uploads
from swingbot_db.engine import transaction
from swingbot_db.listener import Listener
from swingbot_db.store.compilers import Compilers
from swingbot_db.store.leases import Leases
from swingbot_db.store.rows import records
from swingbot_jobs.contract.compiler import Compiler

Result = Literal["success", "failure", "retry", "cancelled", "exception"]


def deliver(conn: sa.Connection, attempt: int, outcome: Mapping[str, Any]) -> Delivery:
    """Store the outcome of `attempt`, once. Repeated, late and conflicting ones do not count."""
    row = conn.execute(
        sa.text(
            "SELECT a.state, a.outcome, a.late, a.order_id, o.kind FROM attempt a JOIN orders o ON"
            " o.id = a.order_id WHERE a.id = :id FOR UPDATE OF a"
        ),
        {"id": attempt},
    ).one_or_none()
    if row is None:
        return Delivery.UNKNOWN
    if (
        outcome["attempt"] != f"a{attempt}"
        or outcome["order"] != f"o{row.order_id}"
        or outcome["kind"] != row.kind
    ):
        return Delivery.FOREIGN
    if row.state == "ended":
        return Delivery.SAME if row.outcome == outcome else Delivery.OTHER
    if row.state == "dead":
        if row.late is not None:
            return Delivery.LATE if row.late == outcome else Delivery.OTHER
        conn.execute(
            sa.text("UPDATE attempt SET late = CAST(:outcome AS jsonb) WHERE id = :id"),
            {"id": attempt, "outcome": json.dumps(outcome)},
        )
        return Delivery.LATE
    conn.execute(
        sa.text(
            "UPDATE attempt SET state = 'ended', outcome = CAST(:outcome AS jsonb), ended_at ="
            " now() WHERE id = :id"
        ),
        {"id": attempt, "outcome": json.dumps(outcome)},
    )
    return Delivery.STORED


def wanted(conn: sa.Connection, attempt: int) -> bool | None:
    """Return True if the work of `attempt` is still needed; None if the attempt does not exist."""
    return conn.execute(
        sa.text(
            "SELECT a.state = 'running' AND o.state <> 'cancelled' FROM attempt a JOIN orders o ON"
            " o.id = a.order_id WHERE a.id = :id"
        ),
        {"id": attempt},
    ).scalar_one_or_none()


def order_facts(conn: sa.Connection, attempt: int) -> OrderFacts | None:
    """Contents of the order document of `attempt`; None if the attempt does not exist."""
    row = conn.execute(
        sa.text(
            """
            SELECT a.id AS attempt, a.state AS attempt_state, o.id AS "order", o.state AS
              order_state, o.kind, o.build_key, o.testbox, o.k, o.purpose,
                   v.tree, v.commit, v.kconfig, v.compiler, v.layout, v.trust, b.image_sha256,
                     coalesce(s.unit_jobs, '[]'::jsonb) AS unit_jobs
            FROM attempt a
            JOIN orders o ON o.id = a.order_id
            JOIN variant v ON v.id = o.variant
            LEFT JOIN kernel_build b ON b.build_key = o.build_key
            LEFT JOIN boot_spec s ON s.sha256 = o.spec
            WHERE a.id = :id
            """
        ),
        {"id": attempt},
    ).one_or_none()
    return None if row is None else OrderFacts(**row._mapping)


def open_dispatches(conn: sa.Connection) -> list[OpenDispatch]:
    """All dispatches that are not over, most urgent first."""
    rows = conn.execute(
        sa.text(
            """
            SELECT d.id, d.attempt, a.order_id AS "order", d.builder, d.external_id, d.state,
              d.bb_request, d.bb_number, o.priority,
                   (o.state = 'cancelled' OR a.state = 'dead') AS cancelled,
                   CASE o.kind WHEN 'build' THEN v.compiler END AS compiler
            FROM dispatch d JOIN attempt a ON a.id = d.attempt JOIN orders o ON o.id = a.order_id
            JOIN variant v ON v.id = o.variant
            WHERE d.state <> 'over'
            ORDER BY o.priority DESC, d.id
            """
        )
    )
    return records(OpenDispatch, rows.all())


def mark_placed(conn: sa.Connection, dispatch: int, buildset: int, request: int) -> None:
    """Record where a wanted dispatch was placed. Idempotent."""
    conn.execute(
        sa.text(
            "UPDATE dispatch SET state = 'placed', bb_buildset = :buildset, bb_request = :request,"
            " placed_at = now() WHERE id = :id AND state = 'wanted'"
        ),
        {"id": dispatch, "buildset": buildset, "request": request},
    )


def mark_build(conn: sa.Connection, dispatch: int, builder: int, number: int) -> None:
    """Record which Buildbot build works on a dispatch, for links."""
    conn.execute(
        sa.text(
            "UPDATE dispatch SET bb_builder = :builder, bb_number = :number WHERE id = :id AND"
            " (bb_builder, bb_number) IS DISTINCT FROM (:builder, :number)"
        ),
        {"id": dispatch, "builder": builder, "number": number},
    )


def mark_over(conn: sa.Connection, dispatch: int, result: Result) -> None:
    """Close a dispatch with Buildbot's result. The first result is final."""
    conn.execute(
        sa.text(
            "UPDATE dispatch SET state = 'over', result = :result, ended_at = now() WHERE id = :id"
            " AND state <> 'over'"
        ),
        {"id": dispatch, "result": result},
    )


class AttemptTransactions:
    """The functions above on an engine, each in one transaction with checkpoints around its commit.

    Every method raises DatabaseAway if the server does not respond.
    """

    def __init__(self, engine: sa.Engine, lease_seconds: float = 300.0) -> None:
        self._engine, self._lease_seconds = engine, lease_seconds

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with _away(), self._engine.connect() as conn:
            yield conn

    @contextmanager
    def _writing(self, name: str) -> Iterator[sa.Connection]:
        with _away(), transaction(self._engine, name) as conn:
            yield conn

    def deliver(self, attempt: int, outcome: Mapping[str, Any]) -> Delivery:
        with self._writing("deliver outcome") as conn:
            return deliver(conn, attempt, outcome)

    def wanted(self, attempt: int) -> bool | None:
        with self._reading() as conn:
            return wanted(conn, attempt)

    def brought(self, attempt: int, sha256: str) -> UploadUsage | None:
        with self._reading() as conn:
            return uploads.brought(conn, attempt, sha256)

    def admit(self, attempt: int, sha256: str, size: int, cap: UploadLimits) -> str | None:
        with self._writing("admit file") as conn:
            return uploads.admit(conn, attempt, sha256, size, cap)

    def hold(self, attempt: int, controller: str) -> LeaseHeld | LeaseRefused | None:
        """Take or renew the lease of the attempt's testbox for `controller`.

        Returns None if the attempt has no lease: it is a build, or over.
        """
        with self._writing("lease held") as conn:
            return Leases(conn).hold(attempt, controller, self._lease_seconds)

    def tell_phase(self, attempt: int, phase: str, why: str) -> bool:
        """Store the phase of the attempt's testbox; False if the attempt no longer holds it."""
        with self._writing("phase report") as conn:
            return Leases(conn).tell_phase(attempt, phase, why)

    def announce(self, worker: str, compilers: Sequence[Compiler]) -> None:
        """Store the compilers of a build worker."""
        with self._writing("compilers announced") as conn:
            Compilers(conn).announce(worker, compilers)

    def compilers(self) -> list[WorkerCompiler]:
        with self._reading() as conn:
            return Compilers(conn).all()

    def listen(self) -> Listener:
        """Open a session that hears which tables change."""
        return Listener(self._engine)

    def order_facts(self, attempt: int) -> OrderFacts | None:
        with self._reading() as conn:
            return order_facts(conn, attempt)

    def open_dispatches(self) -> list[OpenDispatch]:
        with self._reading() as conn:
            return open_dispatches(conn)

    def mark_placed(self, dispatch: int, buildset: int, request: int) -> None:
        with self._writing("dispatch placed") as conn:
            mark_placed(conn, dispatch, buildset, request)

    def mark_build(self, dispatch: int, builder: int, number: int) -> None:
        with self._writing("dispatch has build") as conn:
            mark_build(conn, dispatch, builder, number)

    def mark_over(self, dispatch: int, result: Result) -> None:
        with self._writing("dispatch over") as conn:
            mark_over(conn, dispatch, result)


@contextmanager
def _away() -> Iterator[None]:
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
        raise DatabaseAway(
            f"the database does not respond: {str(error.orig).strip().splitlines()[0]}"
        ) from error
