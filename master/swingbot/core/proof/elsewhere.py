"""On which testboxes that run a job is a change seen, on which not, and what sets them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.proof.gates import GateResult
from swingbot.core.text.numbers import change

_APART: Final = 4  # differences of two testboxes that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxResult:
    """A testbox that ran the job: its row of the metric (None: it has none) and what is known of the machine, by name."""

    testbox: str
    row: ComparisonRow | None
    facts: Mapping[str, str]


def told(own: TestboxResult, others: Sequence[TestboxResult]) -> GateResult:
    """Passed if another testbox shows the change in the same direction; failed if those that can tell do not."""
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
    said = "; ".join(_words(own, place, answers[place.testbox]) for place in others)
    if "yes" in answers.values():
        return GateResult(status="pass", reason=said, detail=detail)
    status = "fail" if {"no", "opposite"} & set(answers.values()) else "not run"
    return GateResult(status=status, reason=said, detail=detail)  # type: ignore[arg-type]  # two of its words


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
    said = {
        "yes": "seen",
        "no": "not seen",
        "opposite": "the other way round",
        "unclear": "cannot be told",
    }[answer]
    differs = apart(own.facts, place.facts)
    return f"{said} on {place.testbox}: {_figure(place.row)}" + (
        f" ({', '.join(differs[:_APART])})" if differs and answer != "yes" else ""
    )


def _figure(row: ComparisonRow | None) -> str:
    if row is None or row.change_pct is None:
        return "no number"
    return change(row.change_pct, row.better) + (f", {row.verdict}" if not row.changed else "")


def apart(own: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """What sets `other` apart from `own`: facts that both noted and that differ, in `own`'s order."""
    return [
        f"{name} {other[name]} instead of {own[name]}"
        for name in own
        if name in other and other[name] != own[name]
    ]
