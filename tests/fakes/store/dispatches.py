"""Dispatches in memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from swingbot.core.model.dispatch import OpenDispatch
from swingbot.service.ports.dispatches import DispatchResult
from tests.fakes.store.tables import DispatchRow, Noun, Refused


class Dispatches(Noun):
    def add(self, order: int, attempt: int, attempt_number: int, number: int, builder: str) -> None:
        if any(d.attempt == attempt and d.state != "over" for d in self.db.dispatches.values()):
            raise Refused(f"attempt {attempt} has an open dispatch")
        self.db.dispatches[attempt, number] = DispatchRow(
            id=self.db.next_id("dispatch"),
            attempt=attempt,
            number=number,
            builder=builder,
            external_id=f"o{order}/a{attempt_number}/d{number}",
        )

    def by_builder(self) -> dict[str, int]:
        return dict(
            Counter(
                d.builder
                for d in self.db.dispatches.values()
                if d.state != "over" and self.db.attempts[d.attempt].state != "ended"
            )
        )

    def open(self) -> list[OpenDispatch]:
        rows = [self._open(row) for row in self.db.dispatches.values() if row.state != "over"]
        return sorted(rows, key=lambda row: (-row.priority, row.id))

    def _open(self, row: DispatchRow) -> OpenDispatch:
        attempt = self.db.attempts[row.attempt]
        order = self.db.orders[attempt.order].order
        assert row.state != "over"
        return OpenDispatch(
            id=row.id,
            attempt=row.attempt,
            order=order.id,
            builder=row.builder,
            external_id=row.external_id,
            state=row.state,
            compiler=self.db.variants[order.variant].compiler if order.kind == "build" else None,
            bb_request=row.request,
            bb_number=row.build[1] if row.build else None,
            priority=order.priority,
            cancelled=order.state in ("cancelled", "failed") or attempt.state == "dead",
        )

    def _change(self, dispatch: int, states: tuple[str, ...], **values: Any) -> None:
        for key, row in self.db.dispatches.items():
            if row.id == dispatch and row.state in states:
                self.db.dispatches[key] = replace(row, **values)

    def place(self, dispatch: int, buildset: int, request: int) -> None:
        self._change(dispatch, ("wanted",), state="placed", buildset=buildset, request=request)

    def set_build(self, dispatch: int, builder: int, number: int) -> None:
        self._change(dispatch, ("wanted", "placed", "over"), build=(builder, number))

    def close(self, dispatch: int, result: DispatchResult) -> None:
        self._change(dispatch, ("wanted", "placed"), state="over", result=result)
