"""The storage protocols say what they promise, stay small, and have the methods that their
implementations have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, get_type_hints

import pytest

from swingbot.service.ports import Transaction
from swingbot_db.store import PgTransaction
from tests.fakes.store import MemoryTransaction
from tests.fakes.store.tables import Tables

MOST_METHODS: Final = 20
NOUNS: Final[dict[str, type]] = {
    name: get_type_hints(member.fget)["return"]
    for name, member in vars(Transaction).items()
    if isinstance(member, property)
}
STORES: Final[dict[str, Callable[[], Transaction]]] = {
    "postgres": lambda: PgTransaction(None),  # type: ignore[arg-type]
    "memory": lambda: MemoryTransaction(Tables()),
}


def methods(of: type) -> dict[str, Callable[..., Any]]:
    return {
        name: member
        for base in reversed(of.__mro__)
        if base.__module__.startswith(("swingbot", "tests"))
        and base.__name__ not in ("Rows", "Noun")
        for name, member in vars(base).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


@pytest.mark.parametrize("noun", NOUNS)
def test_every_method_of_a_protocol_says_what_it_promises(noun: str) -> None:
    assert inspect.getdoc(NOUNS[noun])
    assert [name for name, method in methods(NOUNS[noun]).items() if not method.__doc__] == []


@pytest.mark.parametrize("noun", NOUNS)
def test_a_protocol_stays_small(noun: str) -> None:
    assert 1 <= len(methods(NOUNS[noun])) <= MOST_METHODS


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("noun", NOUNS)
def test_an_implementation_has_the_methods_of_its_protocol(noun: str, store: str) -> None:
    promised, made = methods(NOUNS[noun]), methods(type(getattr(STORES[store](), noun)))
    assert {name: str(inspect.signature(method)) for name, method in made.items()} == {
        name: str(inspect.signature(method)) for name, method in promised.items()
    }


def test_a_noun_is_in_one_module_of_its_name() -> None:
    assert {noun: protocol.__module__ for noun, protocol in NOUNS.items()} == {
        noun: f"swingbot.service.ports.{noun}" for noun in NOUNS
    }
