"""Confirmation: a suspect becomes a culprit only by fresh boots of it and of its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot.core.bisect.choice.boot_requests import ask, first_k
from swingbot.core.bisect.decide.conclude import (
    believed,
    conclude,
    concluded,
    out_of_boots,
    share,
    stated,
)
from swingbot.core.bisect.decide.confirmation_boots import ConfirmationBoots, fresh, missing_boots
from swingbot.core.bisect.posterior.assessment import Assessment
from swingbot.core.bisect.state import Action, Conclusion, Wait
from swingbot.core.bisect.thresholds import (
    CONFIRMED_SHARE,
    DENIED_ERRORS,
    DENIED_SHARE,
    ODD_IMAGES_SEEN,
    UNCHECKED_BUDGET,
    UNCHECKED_NEIGHBOURS,
    WARY_OF_WANDERING,
)
from swingbot.core.model.bisection import WantedBoot


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Fresh boots agree with everything else: the step is between the two kernels of `seen`."""

    seen: ConfirmationBoots


def confirm(
    case: Assessment, left: int, right: int, *, of_set: bool = False
) -> Action | Confirmed | None:
    """Request fresh boots of both sides of the suspected step until it is confirmed or denied.

    None if the search has a better boot than another pair. `of_set`: the step is between two
    kernels with indistinguishable commits in between.
    """
    post, seen = case.posterior, fresh(case, left, right)
    pairs = _pairs(case)
    missing = _missing(case, seen, pairs)
    if missing:
        return _ask_fresh(case, seen, missing)
    sure = of_set or _sure(case, left, right)
    if seen.pairs < pairs:
        if case.state.testboxes > 1 and not sure:
            return None  # the other testboxes go on
        return Wait(why="confirmation boots are in flight")
    if sure and _agrees(case, seen):
        around = _unseen_neighbours(case, seen)
        if not around:
            return Confirmed(seen)
        if case.used + len(around) <= case.policy.max_boots:
            why = "kernels next to the suspect show whether images are odd by themselves"
            return ask(case, around, why)
    more = _missing(case, seen, seen.pairs + 1)
    if _only_an_odd_build(case, seen):
        return _perhaps_odd(case, seen)
    if not sure and share(post, left, right) < case.policy.confidence * float(post.commit.sum()):
        return _beside_the_search(case, seen, more)
    if case.used < case.policy.max_boots and not _denied(case, seen):
        return ask(case, more, "the confirmation boots do not agree with the search yet")
    return conclude(
        case,
        "inconclusive",
        (
            f"commit {case.name(right)} was the suspect, but {seen.pairs} fresh pairs of boots"
            " did not show the step again"
        ),
    )


def _sure(case: Assessment, left: int, right: int) -> bool:
    """Return whether the step is probable enough to name it.

    If no commit can be built in another layout, no boot can exclude an odd image. The stated
    probability accounts for that.
    """
    policy, post = case.policy, case.posterior
    of_all = believed(post, left, right)
    if of_all >= policy.confidence:
        return True
    if case.rebuilds or post.odd_images > ODD_IMAGES_SEEN:
        return False
    if_even = float(post.if_images_are_even()[left + 1 : right + 1].sum()) * (1.0 - post.creep)
    return of_all >= policy.unchecked and if_even >= policy.confidence


def _unseen_neighbours(case: Assessment, seen: ConfirmationBoots) -> list[WantedBoot]:
    """The nearest measurable kernels on both sides that were never booted, where no other build
    can tell whether an image is odd."""
    if case.policy.odd_images <= 0 or case.rebuilds:
        return []
    ev = case.ev
    before = [p for p in range(seen.left, -1, -1) if ev.measurable[p]]
    behind = [p for p in range(seen.right, ev.last + 1) if ev.measurable[p]]
    near = (*before[:UNCHECKED_NEIGHBOURS], *behind[:UNCHECKED_NEIGHBOURS])
    there = {ev.where(b) for b in ev.asked}
    unseen = sorted(set(near) - there)
    return [WantedBoot(ev.points[p], first_k(ev, (p,)), "search") for p in unseen]


def _only_an_odd_build(case: Assessment, seen: ConfirmationBoots) -> bool:
    """Return whether an odd image is the only remaining doubt, which more boots cannot resolve."""
    policy, post = case.policy, case.posterior
    if (
        case.rebuilds
        or seen.pairs < policy.confirm_boots
        or case.used < UNCHECKED_BUDGET * policy.max_boots
    ):
        return False
    even = float(post.if_images_are_even()[seen.left + 1 : seen.right + 1].sum())
    return even * (1.0 - post.creep) >= policy.confidence and _agrees(case, seen)


def _perhaps_odd(case: Assessment, seen: ConfirmationBoots) -> Action:
    members = tuple(case.ev.points[p] for p in range(seen.left + 1, seen.right + 1))
    return concluded(
        case,
        Conclusion(
            kind="inconclusive",
            reason=(
                f"commit {case.name(seen.right)} and its parent differ in {seen.pairs} fresh "
                "pairs of boots; that one of their builds is odd by itself cannot be excluded"
                " without "
                "another layout of the same code"
            ),
            members=members,
            probability=stated(case, seen.left, seen.right),
        ),
    )


def _pairs(case: Assessment) -> int:
    """Return the required number of pairs: more if layout or a wandering testbox could feign the
    step.
    """
    wary = case.layout_matters or case.posterior.wander > WARY_OF_WANDERING
    return case.policy.confirm_boots + (case.policy.wary_boots if wary else 0)


def _missing(case: Assessment, seen: ConfirmationBoots, pairs: int) -> tuple[WantedBoot, ...]:
    return missing_boots(case.ev, seen.left, seen.right, pairs + seen.odd, layouts=case.rebuilds)


def _ask_fresh(case: Assessment, seen: ConfirmationBoots, missing: Sequence[WantedBoot]) -> Action:
    """Request the missing boots within the budget, which the first pairs may exceed."""
    policy, commit = case.policy, case.name(seen.right)
    if seen.failed >= policy.boot_tries + policy.max_confirm:
        return conclude(case, "inconclusive", f"boots to confirm commit {commit} keep failing")
    if case.used + len(missing) > policy.max_boots + 2 * policy.confirm_boots:
        return out_of_boots(case)
    p = share(case.posterior, seen.left, seen.right)
    return ask(
        case,
        missing,
        f"commit {commit} is the suspect (P = {p:.3f}): fresh boots of it and of its parent",
    )


def _agrees(case: Assessment, seen: ConfirmationBoots) -> bool:
    """Return whether the fresh boots alone show the change.

    It must have the same direction, be at least half the minimum and, but for rounding, have an
    interval without 0.
    """
    least = CONFIRMED_SHARE * case.ev.threshold(case.state.min_effect_pct)
    return seen.differ and seen.effect * case.posterior.effect > 0 and abs(seen.effect) >= least


def _beside_the_search(
    case: Assessment, seen: ConfirmationBoots, more: Sequence[WantedBoot]
) -> Action | None:
    """The search has other suspects again; in a group of testboxes one more pair does no harm."""
    if (
        case.state.testboxes > 1
        and more
        and seen.pairs < case.policy.max_confirm
        and case.used < case.policy.max_boots
    ):
        return ask(
            case,
            more,
            "the suspect and its parent once more, while the other testboxes go on with the search",
        )
    return None


def _denied(case: Assessment, seen: ConfirmationBoots) -> bool:
    """Return whether fresh boots plus three standard errors reach less than half the expected
    step.
    """
    if seen.pairs < case.policy.max_confirm:
        return False
    post = case.posterior
    error = seen.row.stderr if seen.row and seen.row.stderr is not None else 0.0
    along = seen.effect * (1.0 if post.effect > 0 else -1.0)
    return along + DENIED_ERRORS * error < DENIED_SHARE * abs(post.effect)
