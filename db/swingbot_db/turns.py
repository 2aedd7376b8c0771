"""Who requested an order, and when that person was last served: the facts of `core/plan/turns.py`.

Requests without a person (those of the operator, at the command line) count as those of one person,
so that they take turns with the others.
"""

from __future__ import annotations

from typing import Final

# A WITH clause: `asker` by order, `served` by testbox (null: builds) and asker, both of the
# requests that are open.
TURNS: Final = """
asker AS (
  SELECT order_id, min(coalesce(who, '')) AS who
  FROM (
    SELECT w.order_id, a.who
    FROM comparison c JOIN want w ON w.comparison = c.id LEFT JOIN asked a ON a.comparison = c.id
    WHERE c.kind IN ('asked', 'experiment') AND c.status IN ('waiting', 'running')
    UNION ALL
    SELECT w.order_id, a.who
    FROM bisection b JOIN want w ON w.bisection = b.id LEFT JOIN asked a ON a.bisection = b.id
    WHERE b.origin = 'asked' AND b.status = 'running') wanted
  GROUP BY order_id),
served AS (
  SELECT o.testbox, asker.who,
    greatest(0, extract(epoch FROM clock_timestamp() - max(t.created_at)))::float AS ago
  FROM asker JOIN orders o ON o.id = asker.order_id JOIN attempt t ON t.order_id = o.id
  GROUP BY o.testbox, asker.who)
"""
# Adds `asker` and `served` to a query of `orders o`.
JOIN_TURNS: Final = """
LEFT JOIN asker ON asker.order_id = o.id
LEFT JOIN served ON served.who = asker.who AND served.testbox IS NOT DISTINCT FROM o.testbox
"""
