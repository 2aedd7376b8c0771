"""Locate the step: choose the next boot of the search, or a suspect to confirm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from swingbot.core.bisect.choice.boot_requests import ask, boot_of, end_again, ends_on_new_testboxes
from swingbot.core.bisect.choice.choose import Plan, choose, weak_end
from swingbot.core.bisect.decide.conclude import believed, conclude, found, hull, out_of_boots
from swingbot.core.bisect.decide.confirm import Confirmed, confirm
from swingbot.core.bisect.decide.endpoints import ends_again
from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats
from swingbot.core.bisect.posterior.assessment import Assessment
from swingbot.core.bisect.posterior.step_posterior import entropy
from swingbot.core.bisect.state import Action, Wait
from swingbot.core.bisect.thresholds import ODD_IMAGES_SEEN
from swingbot.core.model.bisection import WantedBoot


def search(case: Assessment) -> Action | Confirmed:
    """Return the next step of the search in a range that is assumed to have one change."""
    suspects = _suspects(case)
    if suspects is not None and (action := confirm(case, *suspects)) is not None:
        return action
    if case.used >= case.policy.max_boots:
        return out_of_boots(case)
    end = _weak_end(case, careful=case.state.paired or not _reproduced(case))
    if end is not None:
        return end_again(case, end)
    references = ends_on_new_testboxes(case)
    ev = replace(case.ev, pending=(*case.ev.pending, *references), cost=_costs(case))
    if not np.isfinite(ev.cost[np.array(ev.measurable)]).any() and not case.rebuilds:
        return _nothing_tells(case)
    plan = choose(
        ev,
        case.posterior,
        case.policy,
        case.state.testboxes,
        case.elsewhere,
    )
    if plan.best is None or _hopeless(case, plan.best.bits):
        return _nothing_tells(case)
    return _next_boots(case, plan, references)


def _costs(case: Assessment) -> Floats:
    """Seconds of the next boot of each kernel; infinite where it would only repeat."""
    ev, cost = case.ev, case.ev.cost.copy()
    if ev.exact:
        cost[[ev.where(b) for b in ev.asked]] = np.inf
    return cost


def _next_boots(case: Assessment, plan: Plan, references: Sequence[WantedBoot]) -> Action:
    if not plan.chosen and not references:
        if case.ev.exact and not case.whole.ev.pending:
            return _nothing_tells(case)
        return Wait(why="the boots in flight are more informative than any other boot")
    requests = list(references)
    for choice in plan.chosen:
        requests += boot_of(case, choice, requests)
    bits = ", ".join(f"point {case.name(c.position)}: {c.bits:.2f} bits" for c in plan.chosen)
    return ask(case, requests, f"most informative about the step for its cost ({bits})")


def _nothing_tells(case: Assessment) -> Action:
    """Conclude because no boot is informative enough, once the boots in flight have completed."""
    if case.ev.pending:
        return Wait(why="the boots in flight may still be informative")
    if (end := _weak_end(case, careful=True)) is not None:
        return end_again(case, end)  # boots are more informative if the levels are better known
    if not _reproduced(case):
        if case.root is None and (more := ends_again(case)) is not None:
            return more
        return conclude(
            case,
            "inconclusive",
            (
                "the ends differ, but no more than kernels with different layouts; more boots"
                " cannot help"
            ),
        )
    wanted, post = case.policy.confidence, case.posterior
    # the probability that was asked for includes a creep and no step; that of the hull does not
    left, right = hull(case.ev, post, wanted / max(believed(post, 0, case.ev.last), wanted))
    action = confirm(case, left, right, of_set=True)
    if isinstance(action, Confirmed):
        return found(case, action.seen, of_set=True)
    return action or out_of_boots(case)


def _weak_end(case: Assessment, *, careful: bool) -> int | None:
    return None if case.ev.exact else weak_end(case.ev, case.posterior, careful=careful)


def _reproduced(case: Assessment) -> bool:
    return 1.0 - case.posterior.none_or_small >= case.policy.reproduced


def _hopeless(case: Assessment, bits: float) -> bool:
    """Return whether the remaining budget cannot separate the candidates at the best boot's
    rate.
    """
    post = case.posterior
    share = post.commit / max(float(post.commit.sum()), 1e-300)
    return bits * (case.policy.max_boots - case.used) < case.policy.hopeless * entropy(share)


def _suspects(case: Assessment) -> tuple[int, int] | None:
    """Return the neighbouring measurable positions that enclose the step with enough probability.

    This assumes that there is a step; confirmation boots test that.
    """
    post = case.posterior
    odd = case.rebuilds or post.odd_images > ODD_IMAGES_SEEN
    commit = post.commit if odd else post.if_images_are_even()
    left, right, p = _neighbours(case.ev, commit)
    return (left, right) if p >= case.policy.suspect * float(commit.sum()) else None


def _neighbours(ev: Evidence, commit: Floats) -> tuple[int, int, float]:
    """The likeliest step between two measurable neighbours; ties by the earliest commit."""
    can = [p for p in range(ev.last + 1) if ev.measurable[p]]
    upto = np.cumsum(commit)
    shares = upto[can[1:]] - upto[can[:-1]]
    best = int(np.argmax(shares))
    return can[best], can[best + 1], float(shares[best])
