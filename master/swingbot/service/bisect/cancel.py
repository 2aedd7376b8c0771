"""Cancel a bisection that somebody asked for. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.service.bisect.enter_merges import settle
from swingbot.service.ports import Lab, RequestError


def cancel_bisection(lab: Lab, number: int) -> bool:
    """False if it was over already. Raises RequestError if there is none."""
    with lab.transaction("cancel bisection") as tx:
        status = tx.bisections.status(number)
        if status is None:
            raise RequestError(
                f"there is no bisection b{number}; `swingbot list bisections` shows those there are"
            )
        tx.bisections.conclude(number, "cancelled", {}, "cancelled by hand")
        above = tx.bisections.parent_of(number)
        if above is not None:  # the search of a merged branch: what it was for goes on without it
            settle(lab, tx, above[0])
        for swing in tx.swings.of_bisection(number) if above is None else ():
            if swing.state == "bisecting":
                tx.swings.set_state(swing.id, "noted")
        return status == "running"
