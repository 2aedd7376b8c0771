"""Find existing tables by id."""

from __future__ import annotations

from swingbot.core.model import ids
from swingbot.core.model.lookup import missing
from swingbot.core.model.records import Comparison
from swingbot.service.ports import RequestError
from swingbot.service.ports.comparisons import Comparisons


def table_with(comparisons: Comparisons, id: str) -> Comparison:
    """Return the table with this id: `c5` or `e6`. Raises RequestError if it does not exist."""
    kind, number = ids.read(id)
    table = comparisons.get(number)
    if table is None or ids.of_table(table.kind, number) != id:
        raise RequestError(missing(kind, number))
    return table
