"""Dispatches of attempts to Buildbot."""

from __future__ import annotations

from swingbot.core.model.dispatch import OpenDispatch
from swingbot.service.ports.dispatches import DispatchResult
from swingbot_db.store.rows import Rows, records


class Dispatches(Rows):
    def add(self, order: int, attempt: int, attempt_number: int, number: int, builder: str) -> None:
        self.execute(
            "INSERT INTO dispatch (attempt, number, builder, external_id) VALUES (:a, :n,"
            " :builder, :external)",
            a=attempt,
            n=number,
            builder=builder,
            external=f"o{order}/a{attempt_number}/d{number}",
        )

    def by_builder(self) -> dict[str, int]:
        return {
            row.builder: row.n
            for row in self.select(
                "SELECT d.builder, count(*) AS n FROM dispatch d JOIN attempt a ON a.id = d.attempt"
                " WHERE d.state <> 'over' AND a.state <> 'ended' GROUP BY d.builder"
            )
        }

    def open(self) -> list[OpenDispatch]:
        rows = self.select(
            "SELECT d.id, d.attempt, a.order_id AS order, d.builder, d.external_id, d.state,"
            " d.bb_request, d.bb_number, o.priority,"
            " (o.state IN ('cancelled', 'failed') OR a.state = 'dead') AS cancelled,"
            " CASE o.kind WHEN 'build' THEN v.compiler END AS compiler"
            " FROM dispatch d JOIN attempt a ON a.id = d.attempt JOIN orders o ON o.id = a.order_id"
            " JOIN variant v ON v.id = o.variant WHERE d.state <> 'over'"
            " ORDER BY o.priority DESC, d.id"
        )
        return records(OpenDispatch, rows)

    def place(self, dispatch: int, buildset: int, request: int) -> None:
        self.execute(
            "UPDATE dispatch SET state = 'placed', bb_buildset = :buildset, bb_request = :request,"
            " placed_at = now() WHERE id = :id AND state = 'wanted'",
            id=dispatch,
            buildset=buildset,
            request=request,
        )

    def set_build(self, dispatch: int, builder: int, number: int) -> None:
        self.execute(
            "UPDATE dispatch SET bb_builder = :builder, bb_number = :number WHERE id = :id AND"
            " (bb_builder, bb_number) IS DISTINCT FROM (:builder, :number)",
            id=dispatch,
            builder=builder,
            number=number,
        )

    def close(self, dispatch: int, result: DispatchResult) -> None:
        self.execute(
            "UPDATE dispatch SET state = 'over', result = :result, ended_at = clock_timestamp()"
            " WHERE id = :id AND state <> 'over'",
            id=dispatch,
            result=result,
        )
