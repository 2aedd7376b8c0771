"""Decide whether a new report may be sent automatically, and which classes have earned that.

A class is (metric, testbox, set of gates that passed). It has earned automatic release when a
person has released at least `EARNED_RELEASED` of its reports and dropped at most
`EARNED_DROPPED_PCT` percent of the decided ones. With r released and d dropped, in integers:
r >= 20 and 100 d <= 5 (r + d), so 20 released allow one dropped (1/21 = 4.8 %), 38 allow two
(2/40 = 5 %). A report counts once, with the last decision of a person before it was handed to a
mail server. Automatically sent reports do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from swingbot.core.model.statuses import FirstState, GateStatus
from swingbot.core.thresholds import EARNED_DROPPED_PCT, EARNED_RELEASED

Release = Literal["hold", "earned", "release"]
RELEASES: Final[tuple[Release, ...]] = ("hold", "earned", "release")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ReportClass:
    """Reports that earn automatic release together.

    `gates` are the passed gates, sorted by name.
    """

    metric: str
    testbox: str
    gates: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return f"{self.metric} on {self.testbox}, " + (
            f"gates passed: {', '.join(self.gates)}" if self.gates else "no gate passed"
        )


def class_of(metric: str, testbox: str, gates: Iterable[tuple[str, GateStatus]]) -> ReportClass:
    """Return the class of a report; `gates` are (name, status)."""
    return ReportClass(
        metric=metric,
        testbox=testbox,
        gates=tuple(sorted({name for name, status in gates if status == "pass"})),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRecord:
    """Number of reports of one class that people released or dropped."""

    released: int = 0
    dropped: int = 0

    @property
    def earned(self) -> bool:
        return self.released >= EARNED_RELEASED and 100 * self.dropped <= EARNED_DROPPED_PCT * (
            self.released + self.dropped
        )

    @property
    def words(self) -> str:
        """The record in words, with what is still missing for automatic release."""
        counts = f"{self.released} released and {self.dropped} dropped by a person"
        if self.earned:
            return f"{counts}: earned"
        if self.released < EARNED_RELEASED:
            return f"{counts}: {EARNED_RELEASED - self.released} more must be released"
        return (
            f"{counts}: {100 * self.dropped / (self.released + self.dropped):.1f} % dropped, the"
            f" limit is {EARNED_DROPPED_PCT} %"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The first state of a report, with the reason."""

    state: FirstState
    reason: str


def first_state(
    release: Release,
    kind: ReportClass,
    record: ClassRecord,
    *,
    doubts: Sequence[str] = (),
    told_in_digest: bool = False,
) -> Ruling:
    """Return the first state of a report: held, queued, or a draft.

    An improvement that the weekly digest includes stays a draft, which a person may release.
    `doubts` are reasons to hold the report whatever the setting: a failed gate, a culprit that
    could not be shown, no recipients.
    """
    if told_in_digest:
        return Ruling(
            state="draft",
            reason=(
                "an improvement: the digest of its week has it; releasing it sends a separate mail"
            ),
        )
    if doubts:
        return Ruling(state="held", reason="; ".join(doubts))
    if release == "release":
        return Ruling(
            state="queued",
            reason="mail.release is `release`: reports without doubts are sent automatically",
        )
    if release == "hold":
        return Ruling(state="held", reason="mail.release is `hold`: a person releases each report")
    return Ruling(
        state="queued" if record.earned else "held", reason=f"{kind.words}: {record.words}"
    )
