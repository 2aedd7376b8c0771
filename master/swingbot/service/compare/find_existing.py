"""Comparisons and experiments that are there already: by number, and by what was asked."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model.records import Comparison, NewComparison
from swingbot.service.ports import RequestError, Transaction


def known_comparison(tx: Transaction, number: int, *, experiment: bool) -> Comparison:
    """The comparison c`number`, or the experiment e`number`. Raises RequestError."""
    kind, letter = ("experiment", "e") if experiment else ("comparison", "c")
    comparison = tx.comparisons.get(number)
    if comparison is None or (comparison.kind == "experiment") != experiment:
        raise RequestError(
            f"there is no {kind} {letter}{number}; `swingbot list {kind}s` shows those there are"
        )
    return comparison


def asked_before(tx: Transaction, new: NewComparison) -> tuple[int | None, NewComparison]:
    """The number of the same request, None if it has to be made; and `new` as it is made then.

    One that failed or was cancelled is made again, under a key of its own.
    """
    assert new.request_key is not None
    there = tx.comparisons.of_request(new.request_key)
    if there is None:
        return None, new
    if there.status not in ("failed", "cancelled"):
        return there.id, new
    return None, replace(new, request_key=f"{new.request_key}:after-{there.id}")
