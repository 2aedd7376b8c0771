"""What a person asked for, and the patches and commits that came with it."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot.core.model.cursor import BadCursor
from swingbot.core.model.lookup import NotFound

from .bisections import list_bisections
from .rows import Row, rows
from .tables import HEADLINE, list_tables
from .under_way import under_way

_SENT_MOST: Final = 100
_SEARCHES: Final = 20
# The commit of a patch is made here. One is shown with its latest table that is done, else with its
# latest one.
_SENT: Final = f"""
WITH sent AS (
    SELECT DISTINCT ON (v.tree, v.commit) v.commit, v.subject, v.posted, t.name AS tree, c.id,
      c.kind, c.status, c.against[1] AS against, a.arm
    FROM asked q JOIN comparison c ON c.id = q.comparison
    JOIN comparison_arm a ON a.comparison = c.id
    JOIN variant v ON v.id = a.variant AND v.patches <> '[]'
    JOIN tree t ON t.id = v.tree
    WHERE q.who = :who
    ORDER BY v.tree, v.commit, c.status = 'done' DESC, c.id DESC, a.arm
)
SELECT s.*, (SELECT {HEADLINE} FROM comparison_row r WHERE r.comparison = s.id AND r.arm = s.arm
    AND r.against = s.against AND (r.detail->>'headline')::boolean
    AND r.detail->>'alias_of' IS NULL) AS headline
FROM sent s ORDER BY s.id DESC, s.arm LIMIT :most
"""


def person(conn: sa.Connection, who: str, limit: int, after: str = "") -> Row:
    """A person by the name of the tokens. Raises NotFound, unless one asked for something;
    BadCursor.

    `tables` are a piece of those asked for, the newest first; `sent` their latest patches and
    commits, each with what moved most in a table of it.
    """
    mine = {"person": who}
    try:
        tables = list_tables(conn, mine, limit, after)
    except BadCursor:
        raise
    except ValueError:
        raise NotFound(f"{who!r} has made no request") from None
    sent = rows(conn, _SENT, who=who, most=_SENT_MOST)
    return {
        "who": who,
        **under_way(conn, mine),
        "tables": tables,
        "bisections": list_bisections(conn, mine, _SEARCHES),
        "sent": [row | {"id": ids.of_table(row["kind"], row["id"])} for row in sent],
    }
