"""Cancel a comparison that somebody asked for. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.service.ports import Lab, RequestError


def cancel_comparison(lab: Lab, number: int) -> bool:
    """False if it was over already. Raises RequestError if there is none."""
    with lab.transaction("cancel comparison") as tx:
        comparison = tx.comparisons.get(number)
        if comparison is None:
            raise RequestError(
                f"there is no comparison c{number}; `swingbot list comparisons` shows those there are"
            )
        tx.comparisons.set_status(number, "cancelled", "cancelled by hand")
        return comparison.status in ("waiting", "running")
