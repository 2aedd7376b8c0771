"""Cancel a table. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.core.model.statuses import ComparisonStatus
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.table.find_existing import table_with


def cancel_table(transaction: OpenTransaction, id: str) -> ComparisonStatus:
    """Cancel the table `id`.

    Returns its status before; one that had ended keeps it. Raises RequestError if there is none.
    """
    with transaction("cancel table") as tx:
        table = table_with(tx.comparisons, id)
        tx.comparisons.set_status(table.id, "cancelled", "cancelled by hand")
        return table.status
