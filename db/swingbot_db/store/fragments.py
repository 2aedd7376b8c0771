"""SQL shared by several stores."""

from __future__ import annotations

from typing import Final

# Each bisection `low` with itself and all those above it whose merges led to it.
UPWARDS: Final = """WITH RECURSIVE upwards AS (SELECT id AS low, id, parent FROM bisection
  UNION ALL SELECT u.low, b.id, b.parent FROM upwards u JOIN bisection b ON b.id = u.parent)"""
# Each incident `root` with itself and all incidents merged into it; they share one mail thread.
FAMILY: Final = """WITH RECURSIVE family AS (SELECT id AS root, id FROM incident
  UNION SELECT f.root, i.id FROM family f JOIN incident i ON i.merged_into = f.id)"""
# For `comparison c`: no further measurements, and it was not cancelled.
COMPARISON_OVER: Final = "c.status IN ('done', 'failed')"
