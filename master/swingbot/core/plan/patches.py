"""A branch that is rebuilt, seen as patches: which of the old tip's are in the new one, and as what.

As `git range-diff` does: first by patch-id, then by subject and author for patches that were changed. Pure; git gives the
patches (`adapters/git.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from swingbot.core.model.patches import BranchPatch, Patch
from swingbot.core.model.statuses import PatchState


def align(old: Sequence[Patch], new: Sequence[Patch]) -> list[BranchPatch]:
    """What each patch of `new` is to `old`, both oldest first; then those of `old` that are gone, in their order.

    Unmatched commits before the first patch that `old` had are `below`: the branch stands on a newer base. A patch is `moved` if
    it left the longest run of patches that kept their order, so one patch that goes to the end moves alone.
    """
    same = _pairs(old, new, lambda patch: patch.patch_id or None)
    rest = [index for index in range(len(new)) if index not in same]
    taken = set(same.values())
    changed = _pairs(
        [None if i in taken else patch for i, patch in enumerate(old)],
        [patch if i in set(rest) else None for i, patch in enumerate(new)],
        lambda patch: (patch.subject, patch.author),
    )
    matched = same | changed
    kept = _longest_rise([matched[i] for i in sorted(matched)])
    first = min(matched, default=0)
    found = []
    for index, patch in enumerate(new):
        if index in changed:
            found.append(BranchPatch(patch=patch, state="changed", was=old[changed[index]]))
        elif index in same:
            moved = same[index] not in kept
            found.append(
                BranchPatch(patch=patch, state="moved" if moved else "same", was=old[same[index]])
            )
        else:
            found.append(BranchPatch(patch=patch, state="below" if index < first else "new"))
    gone = set(range(len(old))) - set(matched.values())
    return [*found, *(BranchPatch(patch=old[i], state="dropped") for i in sorted(gone))]


def grown(
    known: Sequence[BranchPatch], base: str, old: Sequence[Patch], new: Sequence[Patch]
) -> list[BranchPatch]:
    """The branch after a move: the patches of `known` up to `base`, which both tips have, and `align(old, new)` after it.

    `old` and `new` are what follows `base` in the old tip and in the new one.
    """
    there = [each for each in known if each.state not in ("dropped", "below")]
    at = next((i for i, each in enumerate(there) if each.patch.commit == base), None)
    stay = [] if at is None else there[: at + 1]
    kept = [replace(each, state="same", was=each.patch) for each in stay]
    return [*kept, *align(old, new)]


def tally(states: Sequence[PatchState]) -> str:
    """How many patches a branch has and what became of them, in words: `60 patches: 57 same, 1 changed, 2 new; 1 dropped`."""
    count = Counter(states)
    there: tuple[PatchState, ...] = ("same", "moved", "changed", "new")
    number = sum(count[state] for state in there)
    parts = ", ".join(f"{count[state]} {state}" for state in there if count[state])
    words = f"{number} patch{'es' * (number != 1)}{': ' * bool(parts)}{parts}"
    words += f"; {count['dropped']} dropped" if count["dropped"] else ""
    below = count["below"]
    return words + (
        f"; the base moved by {below} commit{'s' * (below != 1)} below them" if below else ""
    )


def _pairs(
    old: Sequence[Patch | None],
    new: Sequence[Patch | None],
    key: Callable[[Patch], Hashable | None],
) -> dict[int, int]:
    """Indices of `new` to indices of `old` with the same key; of several with one key the first goes with the first."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for index, patch in enumerate(old):
        name = key(patch) if patch is not None else None
        if name is not None:
            waiting[name].append(index)
    found = {}
    for index, patch in enumerate(new):
        name = key(patch) if patch is not None else None
        if name is not None and waiting.get(name):
            found[index] = waiting[name].pop(0)
    return found


def _longest_rise(values: Sequence[int]) -> set[int]:
    """The longest increasing subsequence (patience sorting) of distinct `values`."""
    tops: list[int] = []  # the smallest last value of a run of each length
    before: dict[int, int | None] = {}
    for value in values:
        at = bisect_left(tops, value)
        before[value] = tops[at - 1] if at else None
        tops[at : at + 1] = [value]
    found, value_or_none = set(), tops[-1] if tops else None
    while value_or_none is not None:
        found.add(value_or_none)
        value_or_none = before[value_or_none]
    return found
