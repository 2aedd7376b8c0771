"""What changed beside the headline numbers of a table: counters, shares, functions, calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.documents import Gate
from swingbot.core.model.why_documents import (
    ExplainedChange,
    RankedClue,
    ShareOfTime,
    SizedFunction,
    Why,
)
from swingbot.core.proof.clues import PairRows, clues

MOST_FUNCTIONS: Final = 12
_MOST_SHARES: Final = 6
_LEAST_SHARE: Final = 1.0  # per cent on one side at least
# Metrics that are a share of time, beside those of class `profile` that stand for one symbol alone
SHARES: Final = ("perf-profile.self.", "perf-profile.lock_slowpath", "lock-contention.spinning_pct")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRow:
    """A change that is claimed; `beside` are the counters that changed and the shares of its test,
    `counters` is how many were judged.
    """

    row: ComparisonRow
    beside: Sequence[ComparisonRow]
    counters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """`others`: pairs of kernels that gates measured; `changes`: facts of `compare_kernels` by
    (reference, arm); `makers`: variants whose commit alone makes the change, by arm.
    """

    others: Sequence[PairRows] = ()
    gates: Sequence[Gate] = ()
    changes: Mapping[tuple[int, int], Mapping[str, Any]] = field(default_factory=dict)
    makers: Mapping[int, str] = field(default_factory=dict)


def whys(headlines: Sequence[ClaimedRow], sources: Sources) -> list[Why]:
    """Group `headlines` by their kernels, in order."""
    pairs: dict[tuple[int, int], list[ClaimedRow]] = {}
    for one in headlines:
        pairs.setdefault((one.row.reference, one.row.arm), []).append(one)
    return [_why(pair, found, sources) for pair, found in pairs.items()]


def _why(pair: tuple[int, int], headlines: Sequence[ClaimedRow], sources: Sources) -> Why:
    changes = [_explained(one, sources.others) for one in headlines]
    functions, without = _functions(pair, sources)
    executed = _gate(sources.gates, "executed")
    return {
        "reference": pair[0],
        "arm": pair[1],
        "variant": sources.makers.get(pair[1]),
        "changes": changes,
        "functions": _called(functions or [], executed)[:MOST_FUNCTIONS],
        "functions_total": None if functions is None else len(functions),
        "executed": {"status": executed["status"], "reason": executed["reason"] or ""}
        if executed
        else None,
        "lacks": [*_without_counters(changes), *([without] if without else [])],
    }


def _explained(one: ClaimedRow, others: Sequence[PairRows]) -> ExplainedChange:
    row = one.row
    found: list[RankedClue] = [
        {
            "kind": clue.kind,
            "metric": clue.name,
            "base": clue.base,
            "head": clue.head,
            "change_pct": clue.change_pct,
            "points": clue.points,
        }
        for clue in clues(row, one.beside, others, None)
        if clue.base is not None and clue.head is not None
    ]
    named = {clue["metric"] for clue in found}
    return {
        "testbox": row.testbox,
        "unit_job": row.unit_job,
        "metric": row.metric,
        "change_pct": row.change_pct,
        "clues": found,
        "shares": _shares([one for one in one.beside if one.metric not in named]),
        "counters": one.counters,
    }


def _shares(rows: Sequence[ComparisonRow]) -> list[ShareOfTime]:
    found: list[ShareOfTime] = [
        {
            "metric": row.metric,
            "base": row.base.mean,
            "head": row.head.mean,
            "changed": row.changed,
        }
        for row in rows
        if row.metric.startswith(SHARES)
        and row.base.mean is not None
        and row.head.mean is not None
        and max(row.base.mean, row.head.mean) >= _LEAST_SHARE
    ]
    found.sort(key=lambda one: (-abs(one["head"] - one["base"]), one["metric"]))
    return found[:_MOST_SHARES]


def _functions(
    pair: tuple[int, int], sources: Sources
) -> tuple[list[SizedFunction] | None, str | None]:
    """Return what differs, of the builds or of gate `code`, else None and why."""
    facts, without = sources.changes.get(pair), None
    if facts is not None and facts["state"] != "compared":
        without, facts = str(facts["reason"]), None
    if facts is None and (gate := _gate(sources.gates, "code")):
        facts = gate["detail"] if gate["status"] != "not run" else None
        without = without if facts is None else None
    if facts is None:
        return None, without
    found: list[SizedFunction] = [
        {
            "name": one["name"],
            "object": one["object"],
            "base": one["base"],
            "head": one["head"],
            "calls": None,
        }
        for kind in ("functions", "data")
        for one in facts.get(kind, ())
    ]
    found.sort(key=lambda one: (-abs((one["head"] or 0) - (one["base"] or 0)), one["name"]))
    return found, None


def _called(functions: Sequence[SizedFunction], executed: Gate | None) -> list[SizedFunction]:
    counted = {
        (one["name"], one["object"]): (one["base_calls"] if one["calls"] is None else one["calls"])
        for one in ((executed["detail"] if executed else None) or {}).get("functions", ())
        if one["seen"] == "counted"
    }
    return [{**one, "calls": counted.get((one["name"], one["object"]))} for one in functions]


def _gate(gates: Sequence[Gate], name: str) -> Gate | None:
    return next((one for one in gates if one["gate"] == name and one["status"] != "running"), None)


def _without_counters(changes: Sequence[ExplainedChange]) -> list[str]:
    """Say once for each test that no counter explains its change, and why none does."""
    words = []
    for one in changes:
        if one["clues"] or one["shares"]:
            continue
        test = f"{one['unit_job']} on {one['testbox']}"
        if one["counters"]:
            many = "the one counter" if one["counters"] == 1 else f"the {one['counters']} counters"
            words.append(f"Of {many} of {test}, none changed but with the work done.")
        else:
            words.append(f"No counters were recorded with {test}.")
    return words
