"""Turn wanted boots into requests: give each a number, and a testbox of the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from swingbot.core.bisect.choice.choose import Choice, least_busy
from swingbot.core.bisect.evidence.range_evidence import Evidence
from swingbot.core.bisect.posterior.assessment import Assessment
from swingbot.core.bisect.state import Action, Measure, Wait
from swingbot.core.model.bisection import WantedBoot


def ask(case: Assessment, wanted: Sequence[WantedBoot], why: str) -> Action:
    """Request boots of one phase, or wait if there are none to request.

    Boots of the search already have a testbox.
    """
    if not wanted:
        return Wait(why=f"boots are in flight ({why})")
    placed = wanted if wanted[0].phase == "search" else _placed(case, wanted)
    return Measure(requests=tuple(placed), why=why)


def _placed(case: Assessment, wanted: Sequence[WantedBoot]) -> list[WantedBoot]:
    """Assign boots to the least busy testboxes of the group.

    Boots of equal k are compared with each other and go to one testbox, which cancels the
    difference between testboxes.
    """
    whole = case.whole.ev
    busy, done = Counter(p.testbox for p in whole.pending), Counter(b.testbox for b in whole.boots)
    home = {b.k: b.testbox for b in whole.asked if b.phase != "search"}
    placed = []
    for boot in wanted:
        testbox = home.setdefault(boot.k, least_busy(busy, done, case.state.testboxes))
        busy[testbox] += 1
        placed.append(replace(boot, testbox=testbox))
    return placed


def end_again(case: Assessment, end: int) -> Action:
    """Request one more boot of an end.

    On a paired testbox and in a group of testboxes, both ends are booted at the same k.
    """
    ev, testboxes = case.ev, case.state.testboxes
    if any(p.phase == "search" and ev.where(p) in (0, ev.last) for p in ev.pending):
        return Wait(why="a boot of an end is in flight; points are compared with it")
    ends = (0, ev.last) if case.state.paired or testboxes > 1 else (end,)
    boots = _on_testboxes(case)
    wanted: list[WantedBoot] = []
    for testbox in sorted(range(testboxes), key=lambda testbox: (boots[testbox], testbox))[
        : max(1, testboxes // 2)
    ]:
        wanted += _at_one_k(ev, ends, wanted, testbox)
    return ask(case, wanted, "the level of an end is too uncertain to compare points with it")


def ends_on_new_testboxes(case: Assessment) -> list[WantedBoot]:
    """Return boots of both ends on each testbox of a group that has no boots yet, as a
    reference.
    """
    boots, wanted = _on_testboxes(case), list[WantedBoot]()
    for testbox in (
        testbox
        for testbox in range(case.state.testboxes)
        if case.state.testboxes > 1 and not boots[testbox]
    ):
        wanted += _at_one_k(case.ev, (0, case.ev.last), wanted, testbox)
    return wanted


def _at_one_k(
    ev: Evidence, ends: Sequence[int], already: Sequence[WantedBoot], testbox: int
) -> list[WantedBoot]:
    k = first_k(ev, ends, already)
    return [WantedBoot(ev.points[end], k, "search", testbox=testbox) for end in ends]


def _on_testboxes(case: Assessment) -> Counter[int]:
    """Count the boots of the whole bisection by testbox, including boots in flight."""
    return Counter(b.testbox for b in case.whole.ev.asked)


def boot_of(case: Assessment, choice: Choice, already: Sequence[WantedBoot]) -> list[WantedBoot]:
    """Return the next boot of a point; on a paired testbox, also missing boots of the ends at its
    k.
    """
    ev, position = case.ev, choice.position
    k = first_k(ev, (position,), already)
    wanted = [WantedBoot(ev.points[position], k, "search", choice.layout, choice.testbox)]
    if not case.state.paired:
        return wanted
    there = {ev.key(b) for b in (*ev.asked, *already)} | set(ev.failed)
    missing = [p for p in (0, ev.last) if (p, k) not in there and p != position]
    return [WantedBoot(ev.points[p], k, "search") for p in missing] + wanted


def first_k(ev: Evidence, positions: Sequence[int], already: Sequence[WantedBoot] = ()) -> int:
    """Return the lowest k at which none of these kernels has been booted or requested."""
    used = {b.k for b in (*ev.pending, *already) if ev.where(b) in positions}
    used |= {b.k for p in positions for b in ev.at(p)}
    used |= {k for p, k in ev.failed if p in positions}
    return next(k for k in range(len(used) + 1) if k not in used)
