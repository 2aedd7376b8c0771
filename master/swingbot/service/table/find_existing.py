"""Find existing tables, by id or by request."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model import ids
from swingbot.core.model.lookup import missing
from swingbot.core.model.records import Comparison, NewComparison
from swingbot.service.ports import RequestError
from swingbot.service.ports.comparisons import Comparisons


def table_with(comparisons: Comparisons, id: str) -> Comparison:
    """Return the table with this id: `c5` or `e6`. Raises RequestError if it does not exist."""
    kind, number = ids.read(id)
    table = comparisons.get(number)
    if table is None or ids.of_table(table.kind, number) != id:
        raise RequestError(missing(kind, number))
    return table


def asked_before(
    comparisons: Comparisons, new: NewComparison
) -> tuple[Comparison | None, NewComparison]:
    """Return the table of an earlier identical request, or None; and `new` in the form in which it
    is to be created.

    A request that failed or was cancelled is created again, under a new key.
    """
    assert new.request_key is not None
    key = new.request_key
    while (earlier := comparisons.of_request(key)) is not None:
        if earlier.status not in ("failed", "cancelled"):
            return earlier, new
        key = f"{new.request_key}:after-{earlier.id}"
    return None, replace(new, request_key=key)
