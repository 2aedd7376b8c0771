"""Histories over the tips of watched branches."""

from __future__ import annotations

import json
from typing import Final

from swingbot.core.model.records import TreeHistory
from swingbot_db.store.rows import Rows, records

_PUT: Final = """INSERT INTO tree_history AS h (tree, testbox, unit_job, metric, upto, findings)
  VALUES (:tree, :testbox, :unit_job, :metric, :upto, CAST(:findings AS jsonb))
  ON CONFLICT (tree, testbox, unit_job, metric) DO UPDATE
    SET upto = EXCLUDED.upto, findings = EXCLUDED.findings
  WHERE h.upto <= EXCLUDED.upto"""
_OF: Final = """SELECT tree, testbox, unit_job, metric, upto, findings FROM tree_history
  WHERE tree = :tree
  ORDER BY testbox COLLATE "C", unit_job COLLATE "C", metric COLLATE "C" """


class Histories(Rows):
    def put(self, history: TreeHistory) -> None:
        self.execute(
            _PUT,
            tree=history.tree,
            testbox=history.testbox,
            unit_job=history.unit_job,
            metric=history.metric,
            upto=history.upto,
            findings=json.dumps(history.findings, allow_nan=False),
        )

    def of(self, tree: int) -> list[TreeHistory]:
        return records(TreeHistory, self.select(_OF, tree=tree))
