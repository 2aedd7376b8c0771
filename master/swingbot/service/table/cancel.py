"""Cancel a table. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.core.access.roles import Person
from swingbot.core.model.statuses import ComparisonStatus
from swingbot.service.asked.asker import check_canceller, check_tree
from swingbot.service.ports import RequestError
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.table.find_existing import table_with


def check_not_ended(transaction: OpenTransaction, id: str) -> None:
    """Raises NotFound, RequestError for a table that has ended."""
    with transaction("look at a table") as tx:
        table = table_with(tx.comparisons, id)
        if not table.open:
            raise RequestError(f"{id} has ended ({table.status}): there is nothing to cancel")


def cancel_table(
    transaction: OpenTransaction, id: str, person: Person | None = None
) -> ComparisonStatus:
    """Cancel the table `id`.

    Over the web, a moderator may cancel any table, and a `person` one that they queued, unless
    others asked for it too. None: an operator.

    Returns its status before; one that had ended keeps it. Raises NotFound, NotYours.
    """
    with transaction("cancel table") as tx:
        table = table_with(tx.comparisons, id)
        if person is not None:
            check_tree(person, tx.trees.get(table.tree).name)
            check_canceller(tx.access, id, person)
        by = "by hand" if person is None else f"by {person.who}"
        tx.comparisons.set_status(table.id, "cancelled", f"cancelled {by}")
        return table.status
