"""A bisection runs along first parents. When it blames a merge, the branch that was merged is searched by a bisection of its own,
and swings and incidents wait until that one has answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.model.records import Bisection, Variant
from swingbot.service.bisect.start import open_bisection
from swingbot.service.incident.keep import note_culprit
from swingbot.service.ports import GitError, Lab, RequestError, Store

NAMED: Final = ("culprit", "several")


def enter_merges(
    lab: Lab, store: Store, bisection: Bisection, culprits: Sequence[Variant]
) -> list[Variant]:
    """Open a bisection for each branch that a culprit merged; return the culprits that had one."""
    entered = []
    for culprit in culprits:
        try:
            sides = _branches(lab, culprit.commit)
            for number, (good, bad) in enumerate(sides):
                child = open_bisection(
                    lab,
                    store,
                    store.tree_by_id(bisection.tree),
                    bisection.origin,
                    good,
                    bad,
                    bisection.testbox,
                    store.spec(bisection.spec)[0],
                    bisection.metric,
                    f"merge:{bisection.id}:{culprit.commit}:{number}",
                    group=bisection.testboxes if len(bisection.testboxes) > 1 else (),
                )
                store.set_parent(child, bisection.id, culprit.commit)
        except (GitError, RequestError):
            continue  # the branch cannot be read any more: the merge stays what was found
        if sides:
            entered.append(culprit)
    return entered


def _branches(lab: Lab, commit: str) -> list[tuple[str, str]]:
    """(merge base, tip) of each branch that `commit` merged into its first parent; none for an ordinary commit."""
    first, *others = lab.git.facts(commit).parents or ("",)
    pairs = [(lab.git.merge_base(first, tip), tip) for tip in others]
    return [(base, tip) for base, tip in pairs if base is not None and base != tip]


def settle(lab: Lab, store: Store, number: int) -> None:
    """What follows for swings and incidents, once bisection `number` and those of the branches below it are over."""
    if is_open(store, number):
        return
    bisection = store.bisection(number)
    assert bisection is not None
    branches = store.branches_of(number)
    for merge in dict.fromkeys(merge for _, merge in branches):
        if not any(branch.status in NAMED for branch, of in branches if of == merge):
            found = next(
                variant for variant, _, _ in store.points(number) if variant.commit == merge
            )
            note_culprit(lab, store, bisection, found)
    above = store.parent_of(number)
    if above is not None:
        settle(lab, store, above[0])
        return
    for swing in store.swings_of_bisection(number):
        if swing.state == "bisecting":
            store.set_swing(swing.id, "explained" if bisection.status in NAMED else "not_found")


def is_open(store: Store, number: int) -> bool:
    """Whether the bisection, or one of a branch below it, still runs."""
    bisection = store.bisection(number)
    return bisection is not None and (
        bisection.status == "running"
        or any(is_open(store, branch.id) for branch, _ in store.branches_of(number))
    )
