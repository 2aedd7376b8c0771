"""From what is wanted to requests: which boot of a kernel, by which number, on which testbox of the group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from swingbot.core.bisect.case import Case
from swingbot.core.bisect.choice import Choice, least_busy
from swingbot.core.bisect.evidence import Boot, Evidence, Pending
from swingbot.core.bisect.state import Action, Measure, Phase, Request, Wait


def ask(case: Case, wanted: Sequence[Request], phase: Phase, why: str) -> Action:
    """Ask for boots of positions of `case`; wait where there are none left to ask for."""
    if not wanted:
        return Wait(why=f"boots are in flight ({why})")
    placed = wanted if phase == "search" else _placed(case, wanted)
    return Measure(
        requests=tuple(Request(case.name(r.idx), *r[1:]) for r in placed), phase=phase, why=why
    )


def _placed(case: Case, wanted: Sequence[Request]) -> list[Request]:
    """Which testbox of the group boots what: the least busy one. Boots that are compared with each other, those of equal k, go to
    one testbox, so that what the testboxes differ by cancels."""
    whole = case.whole.ev
    busy, done = Counter(p.box for p in whole.pending), Counter(b.box for b in whole.boots)
    asked: list[Boot | Pending] = [*whole.boots, *whole.pending]
    home = {b.k: b.box for b in asked if b.phase != "search"}
    placed = []
    for request in wanted:
        box = home.setdefault(request.k, least_busy(busy, done, case.state.boxes))
        busy[box] += 1
        placed.append(request._replace(box=box))
    return placed


def end_again(case: Case, end: int) -> Action:
    """One more boot of an end. Of both at the same k when paired, and in a group of testboxes: there only boots of one testbox compare."""
    ev, boxes = case.ev, case.state.boxes
    if any(p.phase == "search" and p.position in (0, ev.last) for p in ev.pending):
        return Wait(why="a boot of an end is in flight; points are judged against it")
    ends = (0, ev.last) if case.state.paired or boxes > 1 else (end,)
    known = _on_boxes(case)
    requests: list[Request] = []
    for box in sorted(range(boxes), key=lambda box: (known[box], box))[: max(1, boxes // 2)]:
        k = max(_first_k(ev, p, requests) for p in ends)
        requests += [Request(p, k, box=box) for p in ends]
    return ask(
        case,
        requests,
        "search",
        "the level of an end is known too badly to judge points against it",
    )


def ends_on_new_testboxes(case: Case) -> list[Pending]:
    """Both ends on each testbox of a group that has booted nothing yet: what it boots then can be judged."""
    known, requests = _on_boxes(case), list[Request]()
    for box in (box for box in range(case.state.boxes) if case.state.boxes > 1 and not known[box]):
        k = max(_first_k(case.ev, p, requests) for p in (0, case.ev.last))
        requests += [Request(p, k, box=box) for p in (0, case.ev.last)]
    return [Pending(r.idx, r.k, "search", 0, r.box) for r in requests]


def _on_boxes(case: Case) -> Counter[int]:
    """Boots of the whole bisection by testbox, those under way too."""
    whole = case.whole.ev
    asked: list[Boot | Pending] = [*whole.boots, *whole.pending]
    return Counter(b.box for b in asked)


def boot_of(case: Case, choice: Choice, already: list[Request]) -> list[Request]:
    """The next boot of a point; on a paired testbox at a k that the ends have too, which get one if they do not."""
    ev, position = case.ev, choice.position
    k = _first_k(ev, position, already)
    wanted = [Request(position, k, choice.layout, choice.box)]
    if case.state.paired:
        there = (
            {(b.position, b.k) for b in ev.boots}
            | {(p.position, p.k) for p in ev.pending}
            | set(ev.failed)
            | {r[:2] for r in already}
        )
        wanted = [
            Request(p, k) for p in (0, ev.last) if (p, k) not in there and p != position
        ] + wanted
    return wanted


def _first_k(ev: Evidence, position: int, already: list[Request]) -> int:
    used = {b.k for b in ev.at(position)} | {p.k for p in ev.pending if p.position == position}
    used |= {k for p, k, *_ in (*ev.failed, *already) if p == position}
    return next(k for k in range(len(used) + 1) if k not in used)
