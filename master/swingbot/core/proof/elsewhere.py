"""Gate `elsewhere`: which other testboxes show the change, and how they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.proof.gates import GateResult
from swingbot.core.table.verdict import in_words

_APART: Final = 4  # differences between two testboxes that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxResult:
    """A testbox that ran the job: its row of the metric (None if it has none) and its facts by
    name.
    """

    testbox: str
    row: ComparisonRow | None
    facts: Mapping[str, str]


def gate_result(own: TestboxResult, others: Sequence[TestboxResult]) -> GateResult:
    """Pass if another testbox shows the change in the same direction.

    Fail if no testbox does and at least one has a clear result; otherwise the gate was not run.
    """
    if not others:
        return GateResult(status="not run", reason=f"only {own.testbox} runs this job")
    answers = {place.testbox: _answer(own.row, place.row) for place in others}
    detail = {
        "testboxes": [
            {
                "testbox": place.testbox,
                "seen": answers[place.testbox],
                "words": _figure(place.row),
                "apart": apart(own.facts, place.facts),
            }
            for place in others
        ]
    }
    reason = "; ".join(_words(own, place, answers[place.testbox]) for place in others)
    if "yes" in answers.values():
        return GateResult(status="pass", reason=reason, detail=detail)
    status = "fail" if {"no", "opposite"} & set(answers.values()) else "not run"
    return GateResult(status=status, reason=reason, detail=detail)  # type: ignore[arg-type]  # two of its values


def _answer(own: ComparisonRow | None, other: ComparisonRow | None) -> str:
    if (
        own is None
        or own.change_pct is None
        or other is None
        or other.change_pct is None
        or other.verdict in ("unclear", "invalid")
    ):
        return "unclear"
    if not other.changed:
        return "no"
    return (
        "yes"
        if math.copysign(1.0, other.change_pct) == math.copysign(1.0, own.change_pct)
        else "opposite"
    )


def _words(own: TestboxResult, place: TestboxResult, answer: str) -> str:
    seen = {
        "yes": "seen",
        "no": "not seen",
        "opposite": "in the opposite direction",
        "unclear": "unclear",
    }[answer]
    differs = apart(own.facts, place.facts)
    return f"{seen} on {place.testbox}: {_figure(place.row)}" + (
        f" ({', '.join(differs[:_APART])})" if differs and answer != "yes" else ""
    )


def _figure(row: ComparisonRow | None) -> str:
    if row is None or row.change_pct is None:
        return "no number"
    return in_words(row)


def apart(own: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """List the facts that both testboxes have and that differ, in the order of `own`."""
    return [
        f"{name} {other[name]} instead of {own[name]}"
        for name in own
        if name in other and other[name] != own[name]
    ]
