"""Find existing tables by id."""

from __future__ import annotations

from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.records import Comparison
from swingbot.service.ports.comparisons import Comparisons


def table_with(comparisons: Comparisons, id: str) -> Comparison:
    """Return the table with this id: `c5` or `e6`. Raises NotFound."""
    kind, number = ids.read(id)
    table = comparisons.get(number)
    if table is None or ids.of_table(table.kind, number) != id:
        raise NotFound(missing(kind, number))
    return table
