"""Dispatches of attempts to Buildbot."""

from __future__ import annotations

from typing import Literal, Protocol

from swingbot.core.model.dispatch import OpenDispatch

DispatchResult = Literal["success", "failure", "retry", "cancelled", "exception"]


class Dispatches(Protocol):
    """Dispatches as the brain requests them and Buildbot works on them; what Buildbot reports can
    be repeated.
    """

    def add(self, order: int, attempt: int, attempt_number: int, number: int, builder: str) -> None:
        """Record the intent to hand an attempt to `builder`, as its dispatch `number`.

        Fails if the attempt has an open dispatch.
        """

    def by_builder(self) -> dict[str, int]:
        """Return the number of open dispatches by builder; builders without one are absent.

        A dispatch whose outcome has arrived is not counted: its worker is free in a moment.
        """

    def open(self) -> list[OpenDispatch]:
        """Return all dispatches that are not over, most urgent first."""

    def place(self, dispatch: int, buildset: int, request: int) -> None:
        """Record where a wanted dispatch was placed."""

    def set_build(self, dispatch: int, builder: int, number: int) -> None:
        """Record which Buildbot build works on a dispatch, for links."""

    def close(self, dispatch: int, result: DispatchResult) -> None:
        """End a dispatch with Buildbot's result. The first result is final."""
