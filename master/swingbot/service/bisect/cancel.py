"""Cancel a bisection on request. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.core.access.roles import Person
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.statuses import BisectionStatus
from swingbot.service.asked.asker import check_canceller, check_tree
from swingbot.service.bisect.enter_merges import settle
from swingbot.service.bisect.steer import known_bisection
from swingbot.service.ports import Git, RequestError
from swingbot.service.ports.steering import Steering
from swingbot.service.ports.transaction import OpenTransaction


def times_resumed(transaction: OpenTransaction, number: int) -> int:
    """Return how often bisection `number`, which is running, was resumed.

    Raises NotFound, RequestError for one that has ended.
    """
    with transaction("look at a bisection") as tx:
        status = known_bisection(tx.bisections, number).status
        if status != "running":
            raise RequestError(f"b{number} has ended ({status}): there is nothing to cancel")
        return _times_resumed(tx.steering, number)


def _times_resumed(steering: Steering, number: int) -> int:
    return sum(steer.act == "resume" for steer in steering.all(number))


def cancel_bisection(
    transaction: OpenTransaction,
    git: Git,
    number: int,
    person: Person | None = None,
    *,
    resumed: int | None = None,
) -> BisectionStatus:
    """Cancel bisection `number`.

    Over the web, a moderator may cancel any, and a `person` one that they queued, unless others
    asked for it too. None: an operator. `resumed`: how often it had been resumed when this was
    decided; one that was resumed since then is not cancelled.

    Returns its status before; one that had ended keeps it. Raises NotFound, NotYours, RequestError.
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
        if resumed not in (None, _times_resumed(tx.steering, number)):
            raise RequestError(f"b{number} was resumed meanwhile; look at it again")
        by = "by hand" if person is None else f"by {person.who}"
        tx.bisections.conclude(number, "cancelled", {}, f"cancelled {by}")
        above = tx.bisections.parent_of(number)
        if above is not None:  # bisected a merged branch: its parent continues without it
            settle(git, tx, above[0])
        for swing in tx.swings.of_bisection(number) if above is None else ():
            if swing.state == "bisecting":
                tx.swings.set_state(swing.id, "not_bisected")
        return status
