"""Polling many trees holds up no order for long, and no tree for good."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from swingbot.app import loop
from swingbot.app.settings import load
from swingbot.service.ports import Lab

TREES = [SimpleNamespace(id=number) for number in range(5)]


@contextmanager
def transaction(_: str) -> Iterator[Any]:
    yield SimpleNamespace(trees=SimpleNamespace(all=lambda: TREES))


class Polls:
    """A function that polls what is due, with a clock of its own; each poll takes `seconds`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now, self.asked, self._seconds = 0.0, list[int](), seconds
        self._settings = load(environ={"SWINGBOT_WATCH_POLL_SECONDS": "60"})
        self._lab, self._polled = (
            cast(Lab, SimpleNamespace(transaction=transaction)),
            dict[int, float](),
        )
        monkeypatch.setattr(loop, "poll_tree", lambda _, tree: self._poll(tree.id))

    def _poll(self, tree: int) -> None:
        self.asked.append(tree)
        self.now += self._seconds

    def __call__(self) -> tuple[bool, list[int]]:
        self.asked.clear()
        more = loop.poll_due(self._settings, self._lab, self._polled, lambda: self.now)
        return more, list(self.asked)


def test_slow_trees_are_polled_a_few_at_a_time_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    poll = Polls(monkeypatch, 0.6 * loop.POLL_SLICE_SECONDS)
    assert [poll() for _ in range(3)] == [(True, [0, 1]), (True, [2, 3]), (False, [4])]


def test_a_tree_that_takes_longer_than_a_slice_holds_up_no_other_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poll = Polls(monkeypatch, 30.0 * loop.POLL_SLICE_SECONDS)
    assert [poll()[1] for _ in range(6)] == [[0], [1], [2], [3], [4], [0]]


def test_fast_trees_are_polled_at_once_and_again_when_they_are_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poll, every = Polls(monkeypatch, 0.0), [tree.id for tree in TREES]
    assert poll() == (False, every)
    poll.now = 59.0
    assert poll() == (False, [])
    poll.now = 60.0
    assert poll() == (False, every)
