"""Confirmation: a suspect becomes a culprit only by fresh boots of it and of its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot.core.bisect.choice.boot_requests import ask
from swingbot.core.bisect.decide.conclude import (
    conclude,
    concluded,
    out_of_boots,
    share,
    stated,
)
from swingbot.core.bisect.decide.confirmation_boots import ConfirmationBoots, fresh, missing_boots
from swingbot.core.bisect.decide.image_checks import (
    few_between_steps,
    further_checks,
    unseen_images,
)
from swingbot.core.bisect.posterior.assessment import Assessment
from swingbot.core.bisect.state import Action, Conclusion, Wait
from swingbot.core.bisect.thresholds import (
    CLEARED_P,
    CONFIRMED_SHARE,
    DENIED_ERRORS,
    DENIED_SHARE,
    WARY_OF_WANDERING,
)
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.text.numbers import count


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
    sure = of_set or stated(case, left, right) >= case.policy.confidence
    if seen.pairs < pairs:
        if case.state.testboxes > 1 and not sure:
            return None  # the other testboxes go on
        return Wait(why="confirmation boots are in flight")
    if sure and _agrees(case, seen):
        if case.rebuilds or case.policy.odd_images <= 0:
            return Confirmed(seen)
        around = unseen_images(case.ev, seen.left, seen.right)
        if not around:
            if any(boot.phase == "search" for boot in case.ev.pending):
                return Wait(why="boots of other images are in flight")
            if few_between_steps(case.ev, case.whole.ev.last, seen.left, seen.right):
                return _suspect(case, seen)
            return Confirmed(seen)
        if case.used + len(around) <= case.policy.max_boots:
            why = "other images next to the suspect show whether some are odd by themselves"
            return ask(case, around, why)
        return _suspect(case, seen, of_budget=len(around))
    even = None if sure or case.rebuilds else _if_even(case, seen)
    if even is not None and (action := _check_images(case, seen, even)) is not None:
        return action
    more = _missing(case, seen, seen.pairs + 1)
    placed = even is not None and even >= case.policy.confidence
    if placed and (_agrees(case, seen) or abs(seen.effect) <= seen.floor):
        return _suspect(case, seen)
    if not (sure or placed) and (
        share(post, left, right) < case.policy.confidence * float(post.commit.sum())
    ):
        return _beside_the_search(case, seen, more)
    if case.used < case.policy.max_boots and not _denied(case, seen) and not seen.repeats:
        return ask(case, more, "the confirmation boots do not agree with the search yet")
    if seen.repeats and _same_way(case, seen):
        return _suspect(case, seen)
    return conclude(
        case,
        "inconclusive",
        (
            f"commit {case.name(right)} was the suspect, but {seen.pairs} fresh pairs of boots"
            " did not show the step again"
        ),
    )


def _if_even(case: Assessment, seen: ConfirmationBoots) -> float:
    """P(the step is there), if no image is odd."""
    even = case.posterior.if_images_are_even()[seen.left + 1 : seen.right + 1]
    return float(even.sum()) * (1.0 - case.posterior.creep)


def _check_images(case: Assessment, seen: ConfirmationBoots, even: float) -> Action | None:
    """Boots of other images beside the suspect, where odd images are the larger doubt; None where
    they are not, or have all been booted.

    `even`: P(the step is there), if no image is odd.
    """
    noise = 0.0 if even >= case.policy.confidence else 1.0 - even
    if even - stated(case, seen.left, seen.right) < noise:
        return None
    more = further_checks(case.ev, case.posterior, seen.left, seen.right)
    if not more or case.used + len(more) > case.policy.max_boots:
        return None
    if any(boot.phase in ("search", "confirm") for boot in case.ev.pending):
        return Wait(why="boots of other images are in flight")
    return ask(case, more, "an odd image is the larger doubt: other images tell")


def _suspect(case: Assessment, seen: ConfirmationBoots, of_budget: int = 0) -> Action:
    """The step is there unless an image is odd, which no further image can tell, or none of the
    budget: it lacks `of_budget` boots."""
    if case.ev.pending:
        return Wait(why="boots of other images are in flight")
    likely = stated(case, seen.left, seen.right)
    between = range(seen.left + 1, seen.right + 1) if likely >= CLEARED_P else ()
    members = tuple(case.ev.points[p] for p in between)
    other = "its parent" if seen.right - seen.left == 1 else f"commit {case.name(seen.left)}"
    change, interval = (seen.row.change_pct, seen.row.interval_pct) if seen.row else (None, None)
    return concluded(
        case,
        Conclusion(
            kind="inconclusive",
            reason=(
                f"commit {case.name(seen.right)} and {other} differ in {seen.pairs} fresh "
                "pairs of boots, but that one of their images is odd by itself is "
                + ("not excluded" if members else f"likelier (P(the change) = {likely:.2g})")
            ),
            members=members,
            probability=likely if members else None,
            change_pct=change,
            interval_pct=interval,
            settled_by=f"{count(of_budget, 'more boot')} of commits next to it"
            if of_budget
            else (
                f"other images of commit {case.name(seen.left)} and commit {case.name(seen.right)}"
                ", such as builds of both in another layout"
            ),
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
    return seen.differ and _same_way(case, seen)


def _same_way(case: Assessment, seen: ConfirmationBoots) -> bool:
    least = CONFIRMED_SHARE * case.ev.threshold(case.state.min_effect_pct)
    return seen.effect * case.posterior.effect > 0 and abs(seen.effect) >= least


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
