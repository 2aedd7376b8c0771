"""Polling many trees beside the rounds: in turn, and no tree waits for another's remote."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from swingbot.app import poller as module
from swingbot.app.poller import LIST_SECONDS, POLLS, Poller
from swingbot.core.model.records import Tree
from swingbot.service.ports import Lab
from tests.buildbot.lab import eventually

EVERY = 60.0


class Trees:
    """Trees 0 to `number` - 1, a clock, and what was polled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int = 5) -> None:
        self.now, self.polled = 0.0, list[int]()
        self.numbers = list(range(number))
        self.away: Exception | None = None
        self.poll: Callable[[int], None] = lambda _: None
        self.lab = cast(
            Lab, SimpleNamespace(transaction=self.transaction, tools=SimpleNamespace(git=None))
        )
        monkeypatch.setattr(module, "poll_tree", self._poll)

    def poller(self, every: float = EVERY) -> Poller:
        return Poller(self.lab, every, lambda: self.now)

    @contextmanager
    def transaction(self, _: str) -> Iterator[Any]:
        if self.away is not None:
            raise self.away
        all_trees = [SimpleNamespace(id=number) for number in self.numbers]
        yield SimpleNamespace(trees=SimpleNamespace(all=lambda: all_trees))

    def _poll(self, _transaction: object, _git: object, tree: Tree) -> None:
        self.polled.append(tree.id)
        self.poll(tree.id)


@pytest.fixture
def trees(monkeypatch: pytest.MonkeyPatch) -> Trees:
    return Trees(monkeypatch)


def all_due(poller: Poller) -> list[int]:
    """Poll what is due, and return it in this order."""
    found = []
    while (tree := poller.next_due()) is not None:
        poller.poll(tree)
        found.append(tree.id)
    return found


def test_each_tree_is_polled_at_once_and_again_when_it_is_due(trees: Trees) -> None:
    poller = trees.poller()
    assert all_due(poller) == trees.numbers
    trees.now = EVERY - 1
    assert all_due(poller) == []
    trees.now = EVERY
    assert all_due(poller) == trees.numbers


def test_the_tree_that_waited_longest_is_next(trees: Trees) -> None:
    poller = trees.poller()
    for place in range(3):
        trees.now = 10.0 * place
        tree = poller.next_due()
        assert tree is not None
        poller.poll(tree)
    trees.now = 2 * EVERY
    assert all_due(poller) == [3, 4, 0, 1, 2]


def test_a_tree_is_polled_once_at_a_time(trees: Trees) -> None:
    poller = trees.poller(every=0.0)
    first = poller.next_due()
    assert first is not None
    others = [tree.id for tree in (poller.next_due() for _ in range(5)) if tree is not None]
    assert sorted(others) == [1, 2, 3, 4]
    poller.poll(first)
    again = poller.next_due()
    assert again is not None
    assert again.id == first.id


def test_a_new_tree_is_noticed_soon_and_at_once_after_a_change(trees: Trees) -> None:
    poller = trees.poller()
    all_due(poller)
    trees.numbers.append(7)
    assert all_due(poller) == []
    trees.now = LIST_SECONDS
    assert all_due(poller) == [7]
    trees.numbers.append(8)
    poller.wake()
    assert all_due(poller) == [8]


def test_a_remote_that_does_not_answer_delays_no_other_tree(trees: Trees) -> None:
    answers = threading.Event()

    def poll(number: int) -> None:
        if number == 0:
            assert answers.wait(60)

    trees.poll = poll
    with Poller(trees.lab, 0.001):
        eventually(
            "the others are polled",
            lambda: all(trees.polled.count(number) > 3 for number in trees.numbers[1:]),
        )
        assert trees.polled.count(0) == 1
        answers.set()
        eventually("it is polled again", lambda: trees.polled.count(0) > 3)
    ended = len(trees.polled)
    time.sleep(0.05)
    assert len(trees.polled) == ended, "no thread polls after the end"


def test_the_end_does_not_wait_for_a_remote_that_does_not_answer(
    trees: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOP_SECONDS", 0.1)
    answers = threading.Event()
    trees.poll = lambda _: cast(None, answers.wait(60))
    with trees.poller():
        eventually("all threads poll", lambda: len(trees.polled) == POLLS)
    assert not answers.is_set()
    answers.set()


def test_a_fault_is_reported_until_the_tree_is_polled_again_or_removed(trees: Trees) -> None:
    poller = trees.poller()

    def poll(number: int) -> None:
        if number in (1, 2):
            raise ValueError(f"tree {number}")

    trees.poll = poll
    assert all_due(poller) == trees.numbers, "a fault of one tree does not stop the others"
    with pytest.raises(ValueError, match="tree 1"):
        poller.check()
    trees.poll, trees.now = lambda _: None, EVERY
    assert [tree.id for tree in (poller.next_due(),) if tree is not None] == [0]
    second = poller.next_due()
    assert second is not None
    poller.poll(second)
    with pytest.raises(ValueError, match="tree 2"):
        poller.check()
    trees.numbers.remove(2)
    poller.wake()
    all_due(poller)
    poller.check()


def test_trees_are_polled_again_after_the_database_was_away(trees: Trees) -> None:
    poller = trees.poller()
    trees.away = OSError("no database")
    assert all_due(poller) == []
    with pytest.raises(OSError, match="no database"):
        poller.check()
    trees.away, trees.now = None, LIST_SECONDS
    assert all_due(poller) == trees.numbers
    poller.check()
