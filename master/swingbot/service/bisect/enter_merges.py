"""Bisect the branches behind a merge.

A bisection follows first parents. When it blames a merge, each merged branch gets a bisection of
its own, and swings and incidents wait for its conclusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.bisect.thresholds import Policy
from swingbot.core.limits import DAILY_REQUESTS
from swingbot.core.model import ids
from swingbot.core.model.records import Bisection, Variant
from swingbot.core.model.statuses import search_over
from swingbot.core.plan.remaining_boots import foreseen_boots
from swingbot.service.asked.commits import off_branch
from swingbot.service.bisect.start import ResolvedBisection, open_bisection
from swingbot.service.incident.keep import note_culprit
from swingbot.service.kernel.foresee_boots import usual_boot_seconds
from swingbot.service.limits import WEB_BISECTED_COMMITS
from swingbot.service.ports import Catalogue, Git, GitError, RequestError, Transaction
from swingbot.service.ports.access import Access
from swingbot.service.ports.bisections import Bisections

NAMED: Final = ("culprit", "several")


def enter_merges(
    git: Git,
    catalogue: Catalogue,
    tx: Transaction,
    bisection: Bisection,
    culprits: Sequence[Variant],
) -> list[Variant]:
    """Open a bisection for each branch that a culprit merged; return these culprits."""
    entered = []
    for culprit in culprits:
        try:
            sides = [
                (good, bad, [good, *git.first_parents(good, bad)])
                for good, bad in _branches(git, culprit.commit)
            ]
            _check_size(tx.access, bisection, [commits for _, _, commits in sides])
            tree = tx.trees.get(bisection.tree)
            for number, (good, bad, commits) in enumerate(sides):
                sent = culprit.trust == "untrusted" or culprit.voucher is not None
                child = open_bisection(
                    git,
                    catalogue,
                    tx,
                    ResolvedBisection(
                        tree=tree,
                        origin=bisection.origin,
                        good=good,
                        bad=bad,
                        testboxes=bisection.testboxes,
                        job=tx.specs.get(bisection.spec)[0],
                        metric=bisection.metric,
                        key=f"merge:{bisection.id}:{culprit.commit}:{number}",
                        foreign=off_branch(git, tree, commits) if sent else (),
                        voucher=culprit.voucher,
                    ),
                )
                tx.bisections.set_parent(child, bisection.id, culprit.commit)
                _pass_on(catalogue, tx, bisection, child)
        except (GitError, RequestError):
            continue  # unreadable, or too much: the merge stays the culprit
        if sides:
            entered.append(culprit)
    return entered


def _check_size(access: Access, bisection: Bisection, sides: Sequence[Sequence[str]]) -> None:
    """Raise RequestError if the branches of a merge are more than may be asked for over the web,
    and somebody asked so for `bisection`: who sends a merge chooses its parents.
    """
    askers = access.askers(ids.show("bisection", bisection.id))
    queued = [access.used(who).daily_requests for who, seconds in askers.items() if seconds]
    if askers and sum(map(len, sides)) > WEB_BISECTED_COMMITS:
        raise RequestError(f"its branches have more than {WEB_BISECTED_COMMITS} commits")
    if max(queued, default=0) + len(sides) > DAILY_REQUESTS:
        raise RequestError(f"they are more than {DAILY_REQUESTS} bisections in 24 hours")


def _pass_on(catalogue: Catalogue, tx: Transaction, parent: Bisection, child: int) -> None:
    """Charge who asked for `parent` over the web with the estimate of `child`."""
    testbox = catalogue.testboxes.known(parent.testbox)
    boots = foreseen_boots(
        [point.weight for point in tx.bisections.points(child)],
        Policy(),
        repeatable=testbox.repeatable,
    )
    each = usual_boot_seconds(tx.boots, tx.specs, testbox, parent.spec)
    above, below = (ids.show("bisection", number) for number in (parent.id, child))
    tx.access.pass_on(above, below, boots * each)


def _branches(git: Git, commit: str) -> list[tuple[str, str]]:
    """Return (merge base, tip) of each branch that `commit` merged into its first parent; empty for
    an ordinary commit."""
    first, *others = git.facts(commit).parents or ("",)
    pairs = [(git.merge_base(first, tip), tip) for tip in others]
    return [(base, tip) for base, tip in pairs if base is not None and base != tip]


def settle(git: Git, tx: Transaction, number: int) -> None:
    """Update swings and incidents once bisection `number` and those of its merged branches have
    ended."""
    if is_open(tx.bisections, number):
        return
    bisection = tx.bisections.get(number)
    assert bisection is not None
    branches = tx.bisections.branches_of(number)
    for merge in dict.fromkeys(merge for _, merge in branches):
        if not any(branch.status in NAMED for branch, of in branches if of == merge):
            culprit = next(
                variant for variant, _, _ in tx.bisections.points(number) if variant.commit == merge
            )
            note_culprit(git, tx.trees, tx.sightings, tx.incidents, bisection, culprit)
    above = tx.bisections.parent_of(number)
    if above is not None:
        settle(git, tx, above[0])
        return
    for swing in tx.swings.of_bisection(number):
        if swing.state == "bisecting":
            tx.swings.set_state(swing.id, "explained" if bisection.status in NAMED else "not_found")


def is_open(bisections: Bisections, number: int) -> bool:
    """Return whether the bisection, or one of a branch merged below it, is still running."""
    status = bisections.status(number)
    assert status is not None
    return not search_over(
        status, (not is_open(bisections, branch.id) for branch, _ in bisections.branches_of(number))
    )
