"""Cancel a comparison or experiment.

Orders that nothing else needs are cancelled in the next round.
"""

from __future__ import annotations

from swingbot.service.ports import Lab
from swingbot.service.table.find_existing import known_comparison


def cancel_comparison(lab: Lab, number: int, *, experiment: bool = False) -> bool:
    """Cancel comparison `number`.

    Returns False if it had already ended. Raises RequestError if it does not exist.
    """
    with lab.transaction("cancel comparison") as tx:
        comparison = known_comparison(tx, number, experiment=experiment)
        tx.comparisons.set_status(number, "cancelled", "cancelled by hand")
        return comparison.open
