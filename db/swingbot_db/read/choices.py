"""What each list can be filtered by, for the controls of its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa

from . import bisections, incidents, orders, tables, trees
from .rows import Filters

_OF: Final[Mapping[str, Filters]] = {
    "comparisons": tables.FILTERS,
    "experiments": tables.FILTERS,
    "bisections": bisections.FILTERS,
    "incidents": incidents.FILTERS,
    "reports": incidents.REPORT_FILTERS,
    "orders": orders.FILTERS,
    "testboxes": trees.TESTBOX_FILTERS,
    "trees": trees.TREE_FILTERS,
    "metrics": trees.METRIC_FILTERS,
}

LISTS: Final = tuple(_OF)


def list_choices(conn: sa.Connection, plural: str) -> dict[str, list[str]]:
    """The filters of a list with the values that each may have; none: any text."""
    return _OF[plural].choices(conn) if plural in _OF else {}
