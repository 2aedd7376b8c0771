"""What a bisection does next. Pure: the same state gives the same answer, and what is in flight is part of the state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import stdtr

from swingbot.core.bisect.belief import candidates
from swingbot.core.bisect.case import Case, look, phases, why_not
from swingbot.core.bisect.choice import Choice, choose, least_busy, weak_end
from swingbot.core.bisect.confirm import Fresh, confirm_requests
from swingbot.core.bisect.evidence import Boot, Evidence, Pending
from swingbot.core.bisect.posterior import Posterior, entropy, wild_boots
from swingbot.core.bisect.state import (
    Action,
    BisectionState,
    Conclude,
    Conclusion,
    Culprit,
    Kind,
    Measure,
    Phase,
    Policy,
    Request,
    Wait,
)

_WARY: Final = 0.2  # P(the testbox wanders) from which a claim needs more fresh pairs


def step(state: BisectionState, policy: Policy) -> Action:
    """Say what this bisection should do next. Calling it twice asks for nothing twice, and never for a boot that already was."""
    if state.boxes > 1:
        policy = _in_group(policy, state.boxes)
    case = look(state, policy)
    ev = case.ev
    if ev.last == 0:
        return _conclude(
            case, "not_reproduced", "the good and the bad kernel are the same image, byte for byte"
        )
    for end, which in ((0, "good"), (ev.last, "bad")):
        if not ev.measurable[end]:
            return _conclude(
                case,
                "inconclusive",
                f"the {which} end cannot be measured: {why_not(case, end)}; bisect from another end",
            )
    ends = _ends(case)
    if ends is not None:
        return ends
    return _solve(case)


def _in_group(policy: Policy, boxes: int) -> Policy:
    """An idle testbox costs nothing and time does: boots are worth asking for sooner."""
    return replace(
        policy,
        parallel=max(policy.parallel, boxes),
        boots_per_end=max(policy.boots_per_end, min(boxes, 4)),
        decisive=min(policy.decisive, 4.0),
        worth=min(policy.worth, 0.3),
    )


# --- the ends ---------------------------------------------------------------------------------------------------------------


def _ends(case: Case) -> Action | None:
    """Boots of both ends until they differ, or do not; None once the search may go on."""
    ev, policy, post = case.ev, case.policy, case.post
    pairs = _end_pairs(ev)
    if pairs < policy.boots_per_end or post is None:
        return _ask_ends(case, policy.boots_per_end, "both ends first: is there a change at all?")
    same = _ends_alike(case, post)
    alike = max(post.none_or_small, same)
    most = policy.max_end_boots + sum(b.phase == "history" for b in ev.at(0))
    last = pairs >= most or ev.used + 2 > policy.max_boots
    if alike >= (policy.no_change_at_last if last else policy.no_change):
        return _conclude(case, "not_reproduced", _no_change_reason(case, alike))
    if (
        set(phases(case.state)) - {"history", "ends"}
        or 1.0 - min(post.none_or_small, same) >= policy.reproduced
    ):
        return None
    if last:
        return _conclude(
            case,
            "inconclusive",
            f"after {pairs} boots of each end it is still not clear whether they differ by {case.state.min_effect_pct:g} %",
        )
    return _ask_ends(
        case, min(pairs + max(1, pairs // 4), most), "the ends do not differ clearly yet"
    )


def _end_pairs(ev: Evidence) -> int:
    """Values of k at which both ends were measured (they need not be pairs on an unpaired testbox, but cost nothing more)."""
    good, bad = ({b.k for b in ev.at(p) if b.phase != "confirm"} for p in (0, ev.last))
    return len(good & bad)


def _ask_ends(case: Case, pairs: int, why: str) -> Action:
    ev = case.ev
    there = {(b.position, b.k) for b in ev.boots} | {(p.position, p.k) for p in ev.pending}
    broken = {k for p, k in ev.failed if p in (0, ev.last)}
    requests: list[Request] = []
    have, k, same_build = 0, 0, case.policy.boots_per_end
    while have < pairs:
        if k not in broken:
            order = (0, ev.last) if k % 2 == 0 else (ev.last, 0)
            layout = (
                have
                if have >= same_build and case.post is not None and _layout_matters(ev, case.post)
                else 0
            )
            requests += [Request(p, k, layout) for p in order if (p, k) not in there]
            have += 1
        k += 1
    return _ask(case, requests, "ends", why)


def _ends_alike(case: Case, post: Posterior) -> float:
    """P(the two end kernels themselves, layout and all, differ by less than the minimum). Unlike P(no step) more boots always settle it."""
    ev = case.ev
    good, bad = _end_boots(case)
    each = 1.0 / len(good) + 1.0 / len(bad)
    sd, df = math.sqrt(post.boot_var * each), case.spread_df(post)
    effect, least = _end_effect(case), ev.threshold(case.state.min_effect_pct)
    return float(stdtr(df, (least - effect) / sd) - stdtr(df, (-least - effect) / sd))


def _no_change_reason(case: Case, p: float) -> str:
    return (
        f"fresh boots of both ends do not differ: P(no change of {case.state.min_effect_pct:g} % or more) = {p:.3f}"
        f" after {len(case.ev.at(0))} and {len(case.ev.at(case.ev.last))} boots"
    )


# --- the search -------------------------------------------------------------------------------------------------------------


def _solve(case: Case) -> Action:
    """Search the range, or both sides one after the other if there are two steps in it."""
    post = case.post
    assert post is not None
    if case.root and post.none_or_small >= case.policy.no_change:
        return _conclude(case, "not_reproduced", "there is no step")
    sides = case.sides()
    if sides is None:
        return _search(case)
    ended: list[Conclusion] = []
    for part in sides:
        action = _solve(part)
        if not isinstance(action, Conclude):
            return action
        ended.append(action.conclusion)
    return _together(case, ended)


def _together(case: Case, ended: list[Conclusion]) -> Conclude:
    found = [c for c in ended if c.kind in ("culprit", "credible_set", "several")]
    if not found:
        return _conclude(
            case,
            "inconclusive",
            "two changes were suspected, neither could be confirmed: "
            + "; ".join(c.reason for c in ended),
        )
    if len(found) == 1:
        rest = "; ".join(c.reason for c in ended if c is not found[0])
        return Conclude(
            conclusion=replace(
                found[0],
                reason=f"{found[0].reason}; elsewhere in the range: {rest}",
                candidates=candidates(case.whole),
            )
        )
    # Only single commits are culprits: of a set it is not known which one to blame.
    culprits, members = (
        tuple(x for c in found if c.kind != "credible_set" for x in c.culprits),
        tuple(x for c in found for x in c.members),
    )
    reason = f"{len(found)} changes in the range, each confirmed: " + "; ".join(
        ("commit " if c.kind == "culprit" else "one of ")
        + ", ".join(map(str, c.members))
        + ("" if c.change_pct is None else f" {c.change_pct:+.1f} %")
        for c in found
    )
    kind: Kind = "several" if culprits else "credible_set"
    return _conclude(
        case,
        kind,
        reason,
        culprits=culprits,
        members=members,
        probability=math.prod(c.probability or 0.0 for c in found),
    )


def _search(case: Case) -> Action:
    ev, policy, post = case.ev, case.policy, case.post
    assert post is not None
    target = _target(ev, post, policy.suspect)
    confirmed = _confirm(case, post, *target, kind=None) if target is not None else None
    if confirmed is not None:
        return confirmed
    if case.used >= policy.max_boots:
        return _wait_or(case, _out_of_boots(case))
    end = weak_end(
        ev, post, careful=case.state.paired or 1.0 - post.none_or_small < policy.reproduced
    )
    if end is not None:
        return _reference(case, end)
    references = _first_on_box(case)
    plan = choose(
        replace(ev, pending=(*ev.pending, *references)),
        post,
        policy,
        case.state.boxes,
        case.elsewhere,
    )
    if plan.best is None or _hopeless(case, post, plan.best.bits):
        if ev.pending:
            return Wait(why="what is in flight may still tell something")
        if (end := weak_end(ev, post, careful=True)) is not None:
            return _reference(case, end)  # against better levels boots may tell more
        if 1.0 - post.none_or_small < policy.reproduced:
            return _conclude(
                case,
                "inconclusive",
                "the ends differ, but no more than kernels do by layout alone: more boots cannot tell",
            )
        return _confirm(
            case, post, *_hull(ev, post, policy.confidence), kind="credible_set"
        ) or _wait_or(case, _out_of_boots(case))
    if not plan.chosen and not references:
        return Wait(why="what is in flight tells more than anything else would")
    requests = [Request(r.position, r.k, box=r.box) for r in references]
    for choice in plan.chosen:
        requests += _boot_of(case, choice, requests)
    bits = ", ".join(f"point {case.name(c.position)}: {c.bits:.2f} bits" for c in plan.chosen)
    return _ask(case, requests, "search", f"tells most about the step for its cost ({bits})")


def _hopeless(case: Case, post: Posterior, bits: float) -> bool:
    """Whether what is left of the budget cannot tell the candidates apart, at the rate of the best boot there is."""
    share = post.commit / max(float(post.commit.sum()), 1e-300)
    return bits * (case.policy.max_boots - case.used) < case.policy.hopeless * entropy(share)


def _target(ev: Evidence, post: Posterior, confidence: float) -> tuple[int, int] | None:
    """The two neighbouring measurable positions that hold the step with enough probability if there is one. Whether there is one,
    their confirmation boots tell best."""
    left, right, p = _neighbours(ev, post)
    return (left, right) if p >= confidence * float(post.commit.sum()) else None


def _neighbours(ev: Evidence, post: Posterior) -> tuple[int, int, float]:
    """The likeliest step between two measurable neighbours; ties by the earliest commit."""
    can = [p for p in range(ev.last + 1) if ev.measurable[p]]
    upto = np.cumsum(post.commit)
    shares = upto[can[1:]] - upto[can[:-1]]
    best = int(np.argmax(shares))
    return can[best], can[best + 1], float(shares[best])


def _hull(ev: Evidence, post: Posterior, confidence: float) -> tuple[int, int]:
    """Smallest stretch between measurable positions that holds the step with `confidence` (given that there is one)."""
    can = [p for p in range(ev.last + 1) if ev.measurable[p]]
    upto = np.cumsum(post.commit)
    at = upto[can]
    reach = np.searchsorted(at, at + confidence * float(upto[-1]) * (1 - 1e-12))
    fits = np.flatnonzero(reach < len(can))
    if not len(fits):
        return can[0], can[-1]
    best = int(fits[np.argmin(reach[fits] - fits)])
    return can[best], can[int(reach[best])]


def _reference(case: Case, end: int) -> Action:
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
    return _ask(
        case,
        requests,
        "search",
        "the level of an end is known too badly to judge points against it",
    )


def _first_on_box(case: Case) -> list[Pending]:
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


def _boot_of(case: Case, choice: Choice, already: list[Request]) -> list[Request]:
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


# --- confirmation and the end -----------------------------------------------------------------------------------------------


def _confirm(
    case: Case, post: Posterior, left: int, right: int, kind: Kind | None
) -> Action | None:
    """Fresh boots of both sides of the suspected step; conclude once they agree with everything else. None: they are there, and
    the search knows a better boot than another pair of them."""
    ev, policy = case.ev, case.policy
    seen = case.fresh(left, right)
    layouts = _layout_matters(ev, post)
    pairs = policy.confirm_boots + (policy.wary_boots if layouts or post.wander > _WARY else 0)
    missing = confirm_requests(ev, left, right, pairs + seen.odd, layouts=layouts)
    if missing:
        if seen.failed >= policy.boot_tries + policy.max_confirm:
            return _conclude(
                case, "inconclusive", f"boots to confirm commit {case.name(right)} keep failing"
            )
        if case.used + len(missing) > policy.max_boots + 2 * policy.confirm_boots:
            return _wait_or(case, _out_of_boots(case))
        return _ask(
            case,
            missing,
            "confirm",
            f"commit {case.name(right)} is the suspect (P = {_share(post, left, right):.3f}): fresh boots of it and of its parent",
        )
    sure = kind is not None or _share(post, left, right) >= policy.confidence
    if seen.pairs < pairs:
        if case.state.boxes > 1 and not sure:
            return None  # the other testboxes go on
        return Wait(why="confirmation boots are in flight")
    least = ev.threshold(case.state.min_effect_pct) / 2
    if sure and seen.effect * post.effect > 0 and abs(seen.effect) >= least:
        return _also_elsewhere(case, post, seen) if kind is None else _found(case, post, seen, kind)
    more = confirm_requests(ev, left, right, seen.pairs + seen.odd + 1, layouts=layouts)
    if not sure and _share(post, left, right) < policy.confidence * float(post.commit.sum()):
        if (
            case.state.boxes > 1
            and more
            and seen.pairs < policy.max_confirm
            and case.used < policy.max_boots
        ):
            return _ask(
                case,
                more,
                "confirm",
                "the suspect and its parent once more, while the other testboxes go on with the search",
            )
        return None
    denied = seen.pairs >= policy.max_confirm and _denies(seen, post)
    if not denied and case.used < policy.max_boots:
        return _ask(
            case, more, "confirm", "the confirmation boots do not agree with the search yet"
        )
    return _conclude(
        case,
        "inconclusive",
        f"commit {case.name(right)} was the suspect, but {seen.pairs} fresh pairs of boots did not show the step again",
    )


def _layout_matters(ev: Evidence, post: Posterior) -> bool:
    """Whether two builds of equal code may differ by a good part of the step: then a claim needs other builds of both commits."""
    return ev.layout_cost is not None and 8.0 * post.sd_layout > abs(post.effect)


def _denies(seen: Fresh, post: Posterior) -> bool:
    """Three standard errors and the fresh boots still do not reach half of what the search believes."""
    error = seen.row.stderr if seen.row and seen.row.stderr is not None else 0.0
    along = seen.effect * (1.0 if post.effect > 0 else -1.0)
    return along + 3.0 * error < abs(post.effect) / 2


def _also_elsewhere(case: Case, post: Posterior, seen: Fresh) -> Action:
    """The step is found. What was measured before it and behind it may hold another one: then that stretch is searched too."""
    found = _found(case, post, seen, None)
    ended = []
    for low, high in ((0, seen.left), (seen.right, case.ev.last)):
        part = (
            case.part(low, high, none=1.0 - 2.0 * case.policy.prior_two)
            if low < high and case.ev.at(low) and case.ev.at(high)
            else None
        )
        if part is not None and part.post is not None and part.post.none_or_small < 0.5:
            action = _solve(part)
            if not isinstance(action, Conclude):
                return action
            ended.append(action.conclusion)
    return (
        _together(case, sorted([found.conclusion, *ended], key=lambda c: c.members[:1]))
        if ended
        else found
    )


def _found(case: Case, post: Posterior, seen: Fresh, kind: Kind | None) -> Conclude:
    ev, row = case.ev, seen.row
    members = tuple(
        ev.points[p] for p in range(seen.left + 1, seen.right + 1) if post.commit[p] > 0
    )
    p = _share(post, seen.left, seen.right)
    change, interval = (row.change_pct, row.interval_pct) if row else (None, None)
    if len(members) == 1 and kind is None:
        only = Culprit(
            idx=members[0],
            parent_idx=case.name(seen.left),
            probability=p,
            change_pct=change,
            interval_pct=interval,
        )
        return _conclude(
            case,
            "culprit",
            _share_reason(case, seen),
            culprits=(only,),
            members=members,
            probability=p,
            change_pct=change,
            interval_pct=interval,
        )
    culprits = tuple(
        Culprit(
            idx=c,
            parent_idx=case.name(seen.left),
            probability=float(post.commit[ev.points.index(c)]),
            change_pct=change,
            interval_pct=interval,
        )
        for c in members
    )
    reason = _set_reason(case, seen, members)
    return _conclude(
        case,
        "credible_set",
        reason,
        culprits=culprits,
        members=members,
        probability=p,
        change_pct=change,
        interval_pct=interval,
    )


def _share_reason(case: Case, seen: Fresh) -> str:
    ev = case.ev
    ends = _end_effect(case.whole)
    share = seen.effect / ends if ends else 1.0
    text = f"confirmed by {seen.pairs} fresh pairs of boots"
    return (
        text
        if 0.6 <= share <= 1.6
        else f"{text}; it explains {ev.pct(seen.effect):+.1f} % of the {ev.pct(ends):+.1f} % between the ends"
    )


def _end_effect(case: Case) -> float:
    """Effect between the ends, from the boots that tested them."""
    means = [
        float(np.mean([np.mean([case.ev.of(v) for v in b.values]) for b in boots]))
        for boots in _end_boots(case)
    ]
    return means[1] - means[0]


def _end_boots(case: Case) -> tuple[list[Boot], list[Boot]]:
    """Boots of the good and of the bad end outside confirmation, those left out that look wild; on a paired testbox those with a partner."""
    ev = case.ev
    wild = wild_boots(ev, case.post) if case.post else set()
    good, bad = ([b for b in ev.at(p) if b.phase != "confirm"] for p in (0, ev.last))
    good, bad = ([b for b in end if (b.position, b.k) not in wild] or end for end in (good, bad))
    common = {b.k for b in good} & {b.k for b in bad}
    if not case.state.paired or not common:
        return good, bad
    return [b for b in good if b.k in common], [b for b in bad if b.k in common]


def _set_reason(case: Case, seen: Fresh, members: tuple[int, ...]) -> str:
    between = [p for p in range(seen.left + 1, seen.right) if not case.ev.measurable[p]]
    if len(between) == seen.right - seen.left - 1:
        whys = "; ".join(f"commit {case.name(p)}: {why_not(case, p)}" for p in between)
        return f"one of these {len(members)} commits; the kernels between them cannot be measured ({whys})"
    return f"one of these {len(members)} commits; more boots would not tell them apart, kernels here differ by layout alone"


def _out_of_boots(case: Case) -> Conclude:
    assert case.post is not None
    left, right = _hull(case.ev, case.post, 0.9)
    members = tuple(
        case.ev.points[p] for p in range(left + 1, right + 1) if case.post.commit[p] > 0
    )
    reason = f"{case.used} boots did not settle it; the step is most likely in one of {len(members)} commits, not confirmed"
    return _conclude(
        case, "inconclusive", reason, members=members, probability=_share(case.post, left, right)
    )


def _wait_or(case: Case, action: Action) -> Action:
    return Wait(why="the last boots of the budget are in flight") if case.ev.pending else action


def _share(post: Posterior, left: int, right: int) -> float:
    return min(1.0, float(post.commit[left + 1 : right + 1].sum()))


def _ask(case: Case, wanted: Sequence[Request], phase: Phase, why: str) -> Action:
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


def _conclude(
    case: Case,
    kind: Kind,
    reason: str,
    *,
    culprits: tuple[Culprit, ...] = (),
    members: tuple[int, ...] = (),
    probability: float | None = None,
    change_pct: float | None = None,
    interval_pct: tuple[float, float] | None = None,
) -> Conclude:
    conclusion = Conclusion(
        kind=kind,
        reason=reason,
        culprits=culprits,
        members=members,
        probability=probability,
        change_pct=change_pct,
        interval_pct=interval_pct,
        candidates=candidates(case.whole),
    )
    return Conclude(conclusion=conclusion)
