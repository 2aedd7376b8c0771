"""Cancel a bisection on request. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.core.model.lookup import missing
from swingbot.core.model.statuses import BisectionStatus
from swingbot.service.bisect.enter_merges import settle
from swingbot.service.ports import Git, RequestError
from swingbot.service.ports.transaction import OpenTransaction


def cancel_bisection(transaction: OpenTransaction, git: Git, number: int) -> BisectionStatus:
    """Cancel bisection `number`.

    Returns its status before; one that had ended keeps it. Raises RequestError if there is none.
    """
    with transaction("cancel bisection") as tx:
        status = tx.bisections.status(number)
        if status is None:
            raise RequestError(missing("bisection", number))
        tx.bisections.conclude(number, "cancelled", {}, "cancelled by hand")
        above = tx.bisections.parent_of(number)
        if above is not None:  # bisected a merged branch: its parent continues without it
            settle(git, tx, above[0])
        for swing in tx.swings.of_bisection(number) if above is None else ():
            if swing.state == "bisecting":
                tx.swings.set_state(swing.id, "noted")
        return status
