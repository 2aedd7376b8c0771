"""Whether a report that was just written may leave by itself, and which classes of reports have earned that.

A class is (metric, testbox, set of gates that passed). It has earned automatic release when a person released at least `EARNED_RELEASED` of its
reports and dropped at most `EARNED_DROPPED_PCT` per cent of those decided: with r released and d dropped, r >= 20 and 100 d <= 5 (r + d), in whole
numbers, so 20 released allow one dropped (1/21 = 4.8 %), 38 allow two (2/40 = 5 %). A report counts once, with the last decision that a person took
about it before it was handed to a mail server; what left by itself counts for nothing.
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
    """What is judged together. `gates` are the names of those that passed, sorted."""

    metric: str
    testbox: str
    gates: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return f"{self.metric} on {self.testbox}, " + (
            f"gates passed: {', '.join(self.gates)}" if self.gates else "no gate passed"
        )


def class_of(metric: str, testbox: str, gates: Iterable[tuple[str, GateStatus]]) -> ReportClass:
    """The class of a report with these gates, (name, status) each."""
    return ReportClass(
        metric=metric,
        testbox=testbox,
        gates=tuple(sorted({name for name, status in gates if status == "pass"})),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRecord:
    """What people decided about the reports of one class."""

    released: int = 0
    dropped: int = 0

    @property
    def earned(self) -> bool:
        return self.released >= EARNED_RELEASED and 100 * self.dropped <= EARNED_DROPPED_PCT * (
            self.released + self.dropped
        )

    @property
    def words(self) -> str:
        """The record, and what is missing."""
        told = f"{self.released} released and {self.dropped} dropped by a person"
        if self.earned:
            return f"{told}: earned"
        if self.released < EARNED_RELEASED:
            return f"{told}: {EARNED_RELEASED - self.released} more released are needed"
        return f"{told}: {100 * self.dropped / (self.released + self.dropped):.1f} % dropped, {EARNED_DROPPED_PCT} % are the most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The state a new report begins in, and why."""

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
    """Held, queued, or (an improvement that its week's digest tells) kept as a draft that a person may release.

    `doubts` are reasons for a person to look, whatever the setting: a gate that failed, a culprit that does not show, nobody to write to.
    """
    if told_in_digest:
        return Ruling(
            state="draft",
            reason="an improvement: the digest of its week tells it; releasing it sends it alone",
        )
    if doubts:
        return Ruling(state="held", reason="; ".join(doubts))
    if release == "release":
        return Ruling(
            state="queued",
            reason="mail.release is `release`: every report without doubts leaves by itself",
        )
    if release == "hold":
        return Ruling(state="held", reason="mail.release is `hold`: a person releases each report")
    return Ruling(
        state="queued" if record.earned else "held", reason=f"{kind.words}: {record.words}"
    )
