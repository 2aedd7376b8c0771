"""What changed beside the headline numbers of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot.core.model.comparison_row import CHANGED, ComparisonRow
from swingbot.core.model.documents import Gate, Table
from swingbot.core.model.why_documents import ExplainedChange, Why
from swingbot.core.proof.clues import PairRows
from swingbot.core.proof.why import SHARES, ClaimedRow, Sources, whys

from .proof import gates
from .rows import Row, rows

# The changes that are claimed against the first reference, the largest first, as many as stand at
# the head of the page; with each the counters that changed and the shares of the same runs.
_WHY: Final = f"""
WITH top AS MATERIALIZED (
  SELECT r.*, row_number() OVER (ORDER BY abs(r.change_pct) DESC NULLS LAST, r.testbox, r.unit_job,
    r.metric, r.arm) AS at
  FROM comparison_row r JOIN comparison c ON c.id = r.comparison AND r.against = c.against[1]
  WHERE c.id = :id AND r.verdict = ANY(ARRAY{list(CHANGED)}) AND {{which}}
  ORDER BY at LIMIT {{most}}
)
SELECT t.at, NULL::bigint AS counters, r.arm, r.reference, r.detail
FROM top t JOIN comparison_row r ON (r.comparison, r.testbox, r.unit_job, r.against, r.arm)
  = (t.comparison, t.testbox, t.unit_job, t.against, t.arm)
WHERE r.detail->>'class' <> 'benchmark'
  AND (r.verdict = ANY(ARRAY{list(CHANGED)}) OR r.metric ^@ ANY(:shares))
UNION ALL
SELECT t.at, (SELECT count(*) FROM comparison_row r
    WHERE (r.comparison, r.testbox, r.unit_job, r.against, r.arm)
      = (t.comparison, t.testbox, t.unit_job, t.against, t.arm)
      AND r.detail->>'class' <> 'benchmark'), t.arm, t.reference, t.detail
FROM top t ORDER BY at
"""
_HEADLINES: Final = _WHY.format(
    which="(r.detail->>'headline')::boolean AND r.detail->>'alias_of' IS NULL", most=4
)
_OF_METRIC: Final = _WHY.format(
    which="(r.testbox, r.unit_job, r.metric) = (:testbox, :unit_job, :metric)", most=1
)
_MEANS: Final = """
SELECT m.metric, array_agg(b.boot ORDER BY b.boot) AS boots, array_agg(b.mean ORDER BY b.boot) AS
  means
FROM measured_metric m JOIN boot_mean b ON b.measured = m.id
WHERE (m.testbox, m.unit_job) = (:testbox, :unit_job) AND m.metric = ANY(:metrics)
  AND b.boot = ANY(:boots)
GROUP BY 1
"""
_OF_INCIDENT: Final = "SELECT comparison FROM incident WHERE id = :id"
_OF_GATES: Final = (
    "SELECT comparison, detail FROM comparison_row WHERE comparison = ANY(:ids)"
    " AND metric = ANY(:metrics)"
)


def why_of_table(conn: sa.Connection, table: Table, changes: Sequence[Row]) -> list[Why]:
    """What changed beside the headline numbers of `table`; `changes` are its `kernel_changes`."""
    by_pair = {(one["reference"], one["arm"]): one for one in changes}
    proof = gates(conn, table["incident"]) if table["incident"] else []
    alone = {row["arm"] for row in table["rows"] if row["attributed_to"]}
    makers = {
        arm["arm"]: arm["variant"]["id"]
        for arm in table["arms"]
        if arm["arm"] in alone or (table["incident"] and arm["arm"] == 1)
    }
    return why(conn, ids.read(table["id"])[1], proof, makers, by_pair)


def why(
    conn: sa.Connection,
    comparison: int,
    proof: Sequence[Gate],
    makers: Mapping[int, str],
    changes: Mapping[tuple[int, int], Mapping[str, Any]] | None = None,
) -> list[Why]:
    """`proof`: gates of the incident whose kernels the comparison has; `makers`: variants whose
    commit alone makes the change, by arm.
    """
    headlines = _headlines(rows(conn, _HEADLINES, id=comparison, shares=list(SHARES)))
    return _explained(conn, headlines, proof, makers, changes or {})


def _explained(
    conn: sa.Connection,
    headlines: Sequence[ClaimedRow],
    proof: Sequence[Gate],
    makers: Mapping[int, str],
    changes: Mapping[tuple[int, int], Mapping[str, Any]],
) -> list[Why]:
    names = sorted({row.metric for one in headlines for row in one.beside})
    others = _others(conn, proof, names) if names else []
    return whys(headlines, Sources(others=others, gates=proof, changes=changes, makers=makers))


def why_of_metric(
    conn: sa.Connection, source: str, testbox: str, unit_job: str, metric: str
) -> ExplainedChange | None:
    """What changed beside the change that a comparison, or that of an incident, claims of a metric;
    None: it claims none.
    """
    kind, number = ids.read(source)
    comparison: int | None = number
    proof: Sequence[Gate] = ()
    if kind == "incident":
        comparison = conn.execute(sa.text(_OF_INCIDENT), {"id": number}).scalar()
        proof = gates(conn, number)
    if comparison is None:
        return None
    place = {"testbox": testbox, "unit_job": unit_job, "metric": metric}
    found = rows(conn, _OF_METRIC, id=comparison, shares=list(SHARES), **place)
    explained = _explained(conn, _headlines(found), proof, {}, {})
    return explained[0]["changes"][0] if explained else None


def means_of_boots(
    conn: sa.Connection, testbox: str, unit_job: str, metrics: Sequence[str], boots: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The mean of each metric by boot; a metric that none of the boots has is left out."""
    numbers = [ids.read(boot, "boot")[1] for boot in boots]
    place = {"testbox": testbox, "unit_job": unit_job, "metrics": list(metrics), "boots": numbers}
    return {
        row["metric"]: {
            ids.show("boot", boot): mean
            for boot, mean in zip(row["boots"], row["means"], strict=True)
        }
        for row in rows(conn, _MEANS, **place)
    }


def _headlines(found: Sequence[Row]) -> list[ClaimedRow]:
    beside: dict[int, list[ComparisonRow]] = {}
    tops: list[tuple[int, ComparisonRow, int]] = []
    for one in found:
        row = ComparisonRow.from_json(
            one["detail"] | {key: one[key] for key in ("arm", "reference")}
        )
        if one["counters"] is None:
            beside.setdefault(one["at"], []).append(row)
        else:
            tops.append((one["at"], row, one["counters"]))
    return [ClaimedRow(row=row, beside=beside.get(at, ()), counters=n) for at, row, n in tops]


def _others(conn: sa.Connection, proof: Sequence[Gate], metrics: Sequence[str]) -> list[PairRows]:
    """The pairs of kernels that passed a gate; the hooks of `executed` change every counter."""
    measured = {
        ids.read(one["comparison"], "comparison")[1]: one["gate"] == "revert"
        for one in proof
        if one["status"] == "pass" and one["gate"] != "executed" and one["comparison"]
    }
    if not measured:
        return []
    found: dict[int, list[ComparisonRow]] = {of: [] for of in measured}
    for row in rows(conn, _OF_GATES, ids=list(measured), metrics=list(metrics)):
        found[row["comparison"]].append(ComparisonRow.from_json(row["detail"]))
    return [PairRows(rows=found[of], turned=turned) for of, turned in measured.items()]
