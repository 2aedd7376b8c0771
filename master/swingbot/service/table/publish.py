"""Publish a private table: from then on everybody may read it."""

from __future__ import annotations

from swingbot.core.access.roles import Person
from swingbot.core.model.records import Comparison
from swingbot.service.asked.asker import check_steerer
from swingbot.service.ports import RequestError
from swingbot.service.ports.comparisons import Comparisons
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.table.find_existing import table_with


def readers_of(transaction: OpenTransaction, id: str) -> tuple[str, ...]:
    """Return who may read a private table, operators apart. Raises NotFound, RequestError."""
    with transaction("look at a table") as tx:
        return _private(tx.comparisons, id).private_to or ()


def publish(transaction: OpenTransaction, id: str, person: Person | None = None) -> None:
    """Let everybody read the table `id` and its kernels; `person` queued it (None: an operator).

    Raises NotFound, NotYours, RequestError for a table that everybody may read.
    """
    with transaction("publish table") as tx:
        table = _private(tx.comparisons, id)
        if person is not None:
            check_steerer(tx.access, id, person, "publish")
        tx.comparisons.publish(table.id)


def _private(comparisons: Comparisons, id: str) -> Comparison:
    table = table_with(comparisons, id)
    if table.private_to is None:
        raise RequestError(f"{id} is not private: everybody may read it")
    return table
