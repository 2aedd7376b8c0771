"""Cancel a comparison or experiment. Orders that nothing else needs are cancelled in the next round."""

from __future__ import annotations

from swingbot.service.ports import Lab, RequestError


def cancel_comparison(lab: Lab, number: int, *, experiment: bool = False) -> bool:
    """False if it was over already. Raises RequestError if there is none."""
    kind, letter = ("experiment", "e") if experiment else ("comparison", "c")
    with lab.transaction("cancel comparison") as tx:
        comparison = tx.comparisons.get(number)
        if comparison is None or (comparison.kind == "experiment") != experiment:
            raise RequestError(
                f"there is no {kind} {letter}{number};"
                f" `swingbot list {kind}s` shows those there are"
            )
        tx.comparisons.set_status(number, "cancelled", "cancelled by hand")
        return comparison.status in ("waiting", "running")
