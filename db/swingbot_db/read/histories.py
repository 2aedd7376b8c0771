"""Histories over the tips of watched branches."""

from __future__ import annotations

import sqlalchemy as sa

from .rows import Row, rows, shown

_OF = """SELECT testbox, unit_job, metric, upto, findings FROM tree_history
WHERE tree = :tree ORDER BY metric, testbox, unit_job"""


def histories(conn: sa.Connection, tree: int) -> list[Row]:
    """{testbox, unit_job, metric, upto, findings} of each headline metric.

    `upto` is the comparison of the last tip; `findings` are as in tree_history.
    """
    return [row | {"upto": shown("comparison", row["upto"])} for row in rows(conn, _OF, tree=tree)]
