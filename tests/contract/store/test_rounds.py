"""What is promised of changes that no round has seen."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.contract.store.world import Store, add_testboxes


@pytest.fixture
def quiet(store: Store) -> Store:
    """A store of which everything has been seen."""
    with store.transaction() as tx:
        tx.rounds.mark_seen(tx.rounds.unseen())
    return store


def unseen(store: Store) -> list[int]:
    with store.transaction() as tx:
        return tx.rounds.unseen()


def test_what_was_seen_goes_and_what_came_meanwhile_stays(quiet: Store) -> None:
    for _ in range(2):
        with quiet.transaction() as tx:
            tx.rounds.note_unseen()
    first, second = unseen(quiet)
    assert first < second
    for _ in range(2):
        with quiet.transaction() as tx:
            tx.rounds.mark_seen([second])
        assert unseen(quiet) == [first]


def test_a_change_is_unseen_once_it_is_committed(quiet: Store) -> None:
    with suppress(ValueError), quiet.transaction() as tx:
        add_testboxes(tx, "a")
        raise ValueError
    assert unseen(quiet) == []
    with quiet.transaction() as tx:
        add_testboxes(tx, "a")
        add_testboxes(tx, "a", "b")
    assert len(unseen(quiet)) == 1


def test_looking_changes_nothing(quiet: Store) -> None:
    with quiet.transaction() as tx:
        tx.orders.open()
        tx.rounds.mark_seen([])
    assert unseen(quiet) == []
