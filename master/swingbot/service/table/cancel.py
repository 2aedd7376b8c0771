"""Cancel a table. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.core.access.roles import Person
from swingbot.core.model.statuses import ComparisonStatus
from swingbot.service.asked.asker import check_canceller, check_tree
from swingbot.service.ports import RequestError
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.table.find_existing import table_with


def boots_of_all_rows(transaction: OpenTransaction, id: str) -> int:
    """Return how many boots the rows of a table that has not ended get on one testbox.

    Raises NotFound, RequestError for one that has ended.
    """
    with transaction("look at a table") as tx:
        table = table_with(tx.comparisons, id)
        if not table.open:
            raise RequestError(f"{id} has ended ({table.status}): there is nothing to cancel")
        return table.boots * len(table.arms)


def cancel_table(
    transaction: OpenTransaction,
    id: str,
    person: Person | None = None,
    *,
    boots: int | None = None,
) -> ComparisonStatus:
    """Cancel the table `id`.

    Over the web, a moderator may cancel any table, and a `person` one that they queued, unless
    others asked for it too. None: an operator. `boots`: those of all rows when this was decided;
    a table that was extended since then is not cancelled.

    Returns its status before; one that had ended keeps it. Raises NotFound, NotYours, RequestError.
    """
    with transaction("cancel table") as tx:
        table = table_with(tx.comparisons, id)
        if person is not None:
            check_tree(person, tx.trees.get(table.tree).name)
            check_canceller(tx.access, id, person)
        if boots not in (None, table.boots * len(table.arms)):
            raise RequestError(f"{id} was extended meanwhile; look at it again")
        by = "by hand" if person is None else f"by {person.who}"
        tx.comparisons.set_status(table.id, "cancelled", f"cancelled {by}")
        return table.status
