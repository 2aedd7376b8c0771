"""What the operator has to be told: what is wrong now, and which of it is new or over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from swingbot.core.model.statuses import AlertKind, TestboxState
from swingbot.core.model.testbox_state import TestboxPhase, TestboxStatus
from swingbot.core.plan.testbox_rules import FAILED, UNFIT, TestboxRules

MOVED: Final = "moved: "  # begins the reason of a quarantine that an anchor led to
# A share that fell to this part of its limit is over: at the limit itself it would begin and end with every boot.
OVER_SHARE: Final = 0.5


class AlertSubject(NamedTuple):
    """What an alert is about; there is one open alert of each at most."""

    kind: AlertKind
    testbox: str | None  # None: the lab as a whole


DISK: Final = AlertSubject("disk", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidRuns:
    """Of a testbox's latest boots: how many runs there were, how many are invalid, and why the last one is."""

    testbox: str
    runs: int
    invalid: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """What waits and may begin: how many orders, and for how many seconds nothing ended while the oldest of them was there."""

    orders: int
    oldest: int | None  # its number
    still_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChanges:
    """Alerts to open, with their reasons, and to close; `quiet` ones close without a mail, because another one tells more."""

    begun: Mapping[AlertSubject, str]
    over: Collection[AlertSubject]
    quiet: Collection[AlertSubject]


def changes(
    open_: Collection[AlertSubject],
    boxes: Sequence[TestboxStatus],
    wishes: Mapping[str, tuple[TestboxState, str | None]],
    invalid: Sequence[InvalidRuns],
    queue: QueueState,
    policy: TestboxRules,
    no_room: str | None = None,
) -> AlertChanges:
    """What began and what is over. `wishes`: of each testbox, whether it may work (active, drained, quarantined, gone) and why not.

    `no_room`: why the disk is too full to hand out work.
    """
    wrong = (
        _of_boxes(open_, boxes, wishes)
        | _of_runs(open_, invalid, policy)
        | _of_queue(queue, policy)
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


def _of_boxes(
    open_: Collection[AlertSubject],
    boxes: Sequence[TestboxStatus],
    wishes: Mapping[str, tuple[TestboxState, str | None]],
) -> dict[AlertSubject, str]:
    """A box that is lost stays so, for the operator, until an attempt there went well: the next one may lose it again."""
    found: dict[AlertSubject, str] = {}
    for box in boxes:
        wish, reason = wishes.get(box.testbox, ("gone", None))
        if wish == "gone":
            continue
        if wish == "quarantined":
            kind = _quarantine(reason or "")
            if kind is not None:
                found[AlertSubject(kind, box.testbox)] = (
                    (reason or "").removeprefix(MOVED).removeprefix(FAILED)
                )
        elif box.state is TestboxPhase.LOST or (
            box.failures > 0 and AlertSubject("lost", box.testbox) in open_
        ):
            found[AlertSubject("lost", box.testbox)] = box.why or "no reason known"
    return found


def _quarantine(reason: str) -> AlertKind | None:
    """Which alert a quarantine is; None for one that a person ordered, who knows."""
    if reason.startswith(MOVED):
        return "moved"
    return "quarantined" if reason.startswith((FAILED, UNFIT)) else None


def _of_runs(
    open_: Collection[AlertSubject], invalid: Sequence[InvalidRuns], policy: TestboxRules
) -> dict[AlertSubject, str]:
    found: dict[AlertSubject, str] = {}
    for box in invalid:
        subject = AlertSubject("invalid", box.testbox)
        limit = policy.invalid_pct * (OVER_SHARE if subject in open_ else 1.0)
        share = 100.0 * box.invalid / box.runs if box.runs else 0.0
        if policy.invalid_pct > 0 and box.runs >= policy.invalid_runs and share > limit:
            found[subject] = (
                f"{box.invalid} of its last {box.runs} runs are invalid ({share:.0f} %); the last: {box.reason}"
            )
    return found


def _of_queue(queue: QueueState, policy: TestboxRules) -> dict[AlertSubject, str]:
    if policy.stuck_seconds <= 0 or not queue.orders or queue.still_seconds < policy.stuck_seconds:
        return {}
    orders = "1 order waits" if queue.orders == 1 else f"{queue.orders} orders wait"
    return {
        AlertSubject(
            "stuck", None
        ): f"nothing ended for {queue.still_seconds / 60:.0f} minutes although {orders}; the oldest is o{queue.oldest}"
    }
