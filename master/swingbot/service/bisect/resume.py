"""Resume a bisection that ended without an answer: plan it, estimate its cost, do it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swingbot.core.access.roles import Person
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model import ids
from swingbot.core.model.records import Bisection
from swingbot.core.model.statuses import RESUMABLE
from swingbot.core.text.numbers import count, duration
from swingbot.service import limits
from swingbot.service.access import note_extension
from swingbot.service.asked.requested import AlreadyDone
from swingbot.service.bisect.boot_keys import order_boot
from swingbot.service.bisect.steer import (
    check_may_steer,
    check_number,
    known_bisection,
    name_of,
    tidy,
)
from swingbot.service.kernel.foresee_boots import usual_boot_seconds
from swingbot.service.ports import Catalogue, RequestError, Transaction
from swingbot.service.ports.transaction import OpenTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """Up to `boots` more boots for a bisection.

    `by`: the name of an operator, or who asks over the web, and pays. `from_boots` are the boots
    that it had requested when this was decided; with others it is not resumed.
    """

    id: str
    boots: int
    from_boots: int | None = None
    by: str | Person
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """What resuming allows; times are in seconds, of all boots that it allows."""

    boots: int
    limit: int  # of the search, with the boots that it had
    testboxes: tuple[str, ...]  # that share the boots
    boot_seconds: float  # of one boot
    seconds: float  # until the end on an idle lab, without builds
    testbox_seconds: float  # of all testboxes together

    def to_json(self, id: str) -> dict[str, Any]:
        return {
            "id": id,
            "boots": self.boots,
            "most_boots": self.limit,
            "testboxes": list(self.testboxes),
            "boot_seconds": self.boot_seconds,
            "seconds": self.seconds,
            "testbox_seconds": self.testbox_seconds,
        }


def resumption_lines(id: str, planned: Resumption) -> list[str]:
    """Format the plan and its cost as text."""
    return [
        f"{id}: up to {count(planned.boots, 'more boot')}, {planned.limit} in all, on"
        f" {', '.join(planned.testboxes)}, of about {duration(planned.boot_seconds)}",
        f"in all at most {duration(planned.seconds)} on an idle lab, and builds",
    ]


def plan_resumption(
    transaction: OpenTransaction, catalogue: Catalogue, request: ResumeRequest
) -> Resumption:
    """Return what the request would allow. Nothing is recorded.

    Raises NotFound, RequestError, NotYours.
    """
    with transaction("plan resumption") as tx:
        return _planned(catalogue, tx, request)[1]


def resume(
    transaction: OpenTransaction, catalogue: Catalogue, request: ResumeRequest
) -> Resumption:
    """Resume the bisection; all its observations still count. A person is charged with the boots
    that it allows.

    Raises NotFound, RequestError, AlreadyDone for one that is running, NotYours.
    """
    with transaction("resume bisection") as tx:
        tx.bisections.lock(ids.read(request.id, "bisection")[1])
        bisection, planned = _planned(catalogue, tx, request)
        number, usual = bisection.id, Policy().max_end_boots
        tx.steering.reopen(
            number, max_boots=planned.limit, max_end_boots=max(usual, planned.limit // 2)
        )
        tx.steering.add(
            number,
            "resume",
            (),
            who=name_of(request.by),
            why=tidy(request.why),
            boots=planned.limit,
        )
        # Orders of boots without an observation were cancelled or abandoned when it ended.
        seen = {o.key for o in tx.bisections.observations(number)}
        points = tx.bisections.points(number)
        for want in tx.bisections.wants(number):
            if want.key not in seen:
                order_boot(catalogue.kconfigs, tx, bisection, points[want.idx][0], want)
        for swing in tx.swings.of_bisection(number):
            if swing.state in ("not_found", "not_bisected"):
                tx.swings.set_state(swing.id, "bisecting")
        if isinstance(request.by, Person):
            note_extension(tx.access, request.by, request.id, planned.testbox_seconds)
        return planned


def _planned(
    catalogue: Catalogue, tx: Transaction, request: ResumeRequest
) -> tuple[Bisection, Resumption]:
    number = ids.read(request.id, "bisection")[1]
    bisection, boots = known_bisection(tx.bisections, number), request.boots
    check_may_steer(tx.access, tx.trees, bisection, request.by, "resume")
    if not 1 <= boots <= limits.RESUMED_BOOTS:
        raise RequestError(f"--boots must be between 1 and {limits.RESUMED_BOOTS}, got {boots}")
    tidy(request.why)
    if bisection.status == "running":
        raise AlreadyDone(
            f"b{number} is running; its budget can be raised after it has ended without an answer"
        )
    if bisection.status not in RESUMABLE:
        raise RequestError(
            f"b{number} has ended ({bisection.status}): there is nothing left to search; start"
            " another bisection"
        )
    check_number(tx.steering, number, request.by)
    before = len(tx.bisections.observations(number))
    if request.from_boots not in (None, before):
        raise RequestError(
            f"b{number} has requested {before} boots by now, not {request.from_boots}: it was"
            " resumed meanwhile; look at it again"
        )
    known = [catalogue.testboxes.known(name) for name in bisection.testboxes]
    boot = max(usual_boot_seconds(tx.boots, tx.specs, one, bisection.spec) for one in known)
    return bisection, Resumption(
        boots=boots,
        limit=before + boots,
        testboxes=bisection.testboxes,
        boot_seconds=boot,
        seconds=boots * boot / len(known),
        testbox_seconds=boots * boot,
    )
