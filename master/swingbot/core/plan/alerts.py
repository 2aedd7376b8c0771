"""Alerts for the operator: which problems exist, and which of them are new or over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from swingbot.core.model.statuses import AlertKind, TestboxState
from swingbot.core.model.testbox_state import TestboxPhase, TestboxStatus
from swingbot.core.plan.testbox_rules import FAILED, UNFIT, TestboxRules
from swingbot.core.thresholds import OVER_SHARE

MOVED: Final = "moved: "  # prefix of the reason of a quarantine caused by an anchor


class AlertSubject(NamedTuple):
    """The subject of an alert; each has at most one open alert."""

    kind: AlertKind
    testbox: str | None  # None: the lab as a whole


DISK: Final = AlertSubject("disk", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidRuns:
    """The latest boots of a testbox: number of runs, number of invalid runs, and the last
    reason."""

    testbox: str
    runs: int
    invalid: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Orders that could begin, and the seconds since anything ended while the oldest waited."""

    orders: int
    oldest: int | None  # order number
    still_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChanges:
    """Alerts to open (with reasons) and to close.

    `quiet` ones close without a mail, because another alert covers them.
    """

    begun: Mapping[AlertSubject, str]
    over: Collection[AlertSubject]
    quiet: Collection[AlertSubject]


def changes(
    open_: Collection[AlertSubject],
    testboxes: Sequence[TestboxStatus],
    wishes: Mapping[str, tuple[TestboxState, str | None]],
    invalid: Sequence[InvalidRuns],
    queue: QueueState,
    rules: TestboxRules,
    no_room: str | None = None,
) -> AlertChanges:
    """Return which problems are new and which are over.

    `wishes` maps a testbox to its requested state (active, drained, quarantined, gone) and the
    reason. `no_room` is why the disk is too full to hand out work.
    """
    wrong = (
        _of_testboxes(open_, testboxes, wishes)
        | _of_runs(open_, invalid, rules)
        | _of_queue(queue, rules)
    )
    if no_room is not None:
        wrong[DISK] = no_room
    gone = [subject for subject in open_ if subject not in wrong]
    quiet = [
        s
        for s in gone
        if s.kind == "lost"
        and any(
            other.testbox == s.testbox and other.kind in ("quarantined", "moved") for other in wrong
        )
    ]
    return AlertChanges(
        begun={s: why for s, why in wrong.items() if s not in open_},
        over=[s for s in gone if s not in quiet],
        quiet=quiet,
    )


def _of_testboxes(
    open_: Collection[AlertSubject],
    testboxes: Sequence[TestboxStatus],
    wishes: Mapping[str, tuple[TestboxState, str | None]],
) -> dict[AlertSubject, str]:
    """Return problems of single testboxes.

    For the operator, a testbox remains lost until an attempt there succeeds, as the next one may
    lose it again.
    """
    problems: dict[AlertSubject, str] = {}
    for testbox in testboxes:
        wish, reason = wishes.get(testbox.testbox, ("gone", None))
        if wish == "gone":
            continue
        if wish == "quarantined":
            kind = _quarantine(reason or "")
            if kind is not None:
                problems[AlertSubject(kind, testbox.testbox)] = (
                    (reason or "").removeprefix(MOVED).removeprefix(FAILED)
                )
        elif testbox.state is TestboxPhase.LOST or (
            testbox.failures > 0 and AlertSubject("lost", testbox.testbox) in open_
        ):
            problems[AlertSubject("lost", testbox.testbox)] = testbox.why or "no reason known"
    return problems


def _quarantine(reason: str) -> AlertKind | None:
    """Return the alert for a quarantine; None if a person ordered it and thus knows."""
    if reason.startswith(MOVED):
        return "moved"
    return "quarantined" if reason.startswith((FAILED, UNFIT)) else None


def _of_runs(
    open_: Collection[AlertSubject], invalid: Sequence[InvalidRuns], rules: TestboxRules
) -> dict[AlertSubject, str]:
    problems: dict[AlertSubject, str] = {}
    for testbox in invalid:
        subject = AlertSubject("invalid", testbox.testbox)
        limit = rules.invalid_pct * (OVER_SHARE if subject in open_ else 1.0)
        share = 100.0 * testbox.invalid / testbox.runs if testbox.runs else 0.0
        if rules.invalid_pct > 0 and testbox.runs >= rules.invalid_runs and share > limit:
            problems[subject] = (
                f"{testbox.invalid} of its last {testbox.runs} runs are invalid ({share:.0f} %);"
                f" the last: {testbox.reason}"
            )
    return problems


def _of_queue(queue: QueueState, rules: TestboxRules) -> dict[AlertSubject, str]:
    if rules.stuck_seconds <= 0 or not queue.orders or queue.still_seconds < rules.stuck_seconds:
        return {}
    orders = "1 order waits" if queue.orders == 1 else f"{queue.orders} orders wait"
    return {
        AlertSubject("stuck", None): (
            f"nothing ended for {queue.still_seconds / 60:.0f} minutes although {orders};"
            f" the oldest is o{queue.oldest}"
        )
    }
