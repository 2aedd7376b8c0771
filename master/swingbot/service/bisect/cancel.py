"""Cancel a bisection on request. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.core.access.roles import Person
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.statuses import BisectionStatus
from swingbot.service.asked.asker import check_canceller, check_tree
from swingbot.service.bisect.enter_merges import settle
from swingbot.service.ports import Git
from swingbot.service.ports.transaction import OpenTransaction


def cancel_bisection(
    transaction: OpenTransaction, git: Git, number: int, person: Person | None = None
) -> BisectionStatus:
    """Cancel bisection `number`.

    Over the web, a moderator may cancel any, and a `person` one that they queued, unless others
    asked for it too. None: an operator.

    Returns its status before; one that had ended keeps it. Raises NotFound, NotYours.
    """
    with transaction("cancel bisection") as tx:
        status = tx.bisections.status(number)
        if status is None:
            raise NotFound(missing("bisection", number))
        if person is not None:
            bisection = tx.bisections.get(number)
            assert bisection is not None
            check_tree(person, tx.trees.get(bisection.tree).name)
            check_canceller(tx.access, ids.show("bisection", number), person)
        by = "by hand" if person is None else f"by {person.who}"
        tx.bisections.conclude(number, "cancelled", {}, f"cancelled {by}")
        above = tx.bisections.parent_of(number)
        if above is not None:  # bisected a merged branch: its parent continues without it
            settle(git, tx, above[0])
        for swing in tx.swings.of_bisection(number) if above is None else ():
            if swing.state == "bisecting":
                tx.swings.set_state(swing.id, "noted")
        return status
