"""Find existing comparisons and experiments, by number or by request."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model.lookup import missing
from swingbot.core.model.records import Comparison, NewComparison
from swingbot.service.ports import RequestError, Transaction


def known_comparison(tx: Transaction, number: int, *, experiment: bool) -> Comparison:
    """Return the comparison c`number`, or the experiment e`number`.

    Raises RequestError if it does not exist.
    """
    comparison = tx.comparisons.get(number)
    if comparison is None or (comparison.kind == "experiment") != experiment:
        raise RequestError(missing("experiment" if experiment else "comparison", number))
    return comparison


def asked_before(tx: Transaction, new: NewComparison) -> tuple[int | None, NewComparison]:
    """Return the number of an earlier identical request, or None; and `new` in the form in which it
    is to be created.

    A request that failed or was cancelled is created again, under a new key.
    """
    assert new.request_key is not None
    earlier = tx.comparisons.of_request(new.request_key)
    if earlier is None:
        return None, new
    if earlier.status not in ("failed", "cancelled"):
        return earlier.id, new
    return None, replace(new, request_key=f"{new.request_key}:after-{earlier.id}")
