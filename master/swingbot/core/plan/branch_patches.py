"""A rebuilt branch as patches: which patches of the old tip are in the new one, and in what state.

Patches are matched like `git range-diff` does: by patch-id, then by subject and author for changed
patches. Pure; `adapters/git.py` gets the patches from git.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from swingbot.core.model.patches import BranchPatch, Patch
from swingbot.core.model.statuses import PatchState


def align(old: Sequence[Patch], new: Sequence[Patch]) -> list[BranchPatch]:
    """Return the state of each patch of `new`, followed by the patches of `old` that are gone.

    Both are oldest first. Unmatched commits before the first patch of `old` are `below`: the branch
    is on a newer base. A patch is `moved` if it is not in the longest run of patches that kept
    their order, so that a patch moved to the end is the only moved one.
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
    in_order = _longest_rise([matched[i] for i in sorted(matched)])
    first = min(matched, default=0)
    patches = []
    for index, patch in enumerate(new):
        if index in changed:
            patches.append(BranchPatch(patch=patch, state="changed", was=old[changed[index]]))
        elif index in same:
            moved = same[index] not in in_order
            patches.append(
                BranchPatch(patch=patch, state="moved" if moved else "same", was=old[same[index]])
            )
        else:
            patches.append(BranchPatch(patch=patch, state="below" if index < first else "new"))
    gone = set(range(len(old))) - set(matched.values())
    return [*patches, *(BranchPatch(patch=old[i], state="dropped") for i in sorted(gone))]


def grown(
    known: Sequence[BranchPatch], base: str, old: Sequence[Patch], new: Sequence[Patch]
) -> list[BranchPatch]:
    """Return the branch after a move: `known` patches up to `base`, then `align(old, new)`.

    Both tips contain `base`. `old` and `new` are the patches after it in the old and new tip.
    """
    present = [each for each in known if each.state not in ("dropped", "below")]
    at = next((i for i, each in enumerate(present) if each.patch.commit == base), None)
    stay = [] if at is None else present[: at + 1]
    unchanged = [replace(each, state="same", was=each.patch) for each in stay]
    return [*unchanged, *align(old, new)]


def said(state: PatchState) -> str:
    """Return the word for a state; "same" is a word of measurements, too."""
    return "unchanged" if state == "same" else state


def tally(states: Sequence[PatchState]) -> str:
    """Summarise a branch, such as `60 patches: 57 unchanged, 1 changed, 2 new; 1 dropped`."""
    count = Counter(states)
    present: tuple[PatchState, ...] = ("same", "moved", "changed", "new")
    number = sum(count[state] for state in present)
    parts = ", ".join(f"{count[state]} {said(state)}" for state in present if count[state])
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
    """Map indices of `new` to indices of `old` by key; equal keys are matched in order."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for index, patch in enumerate(old):
        name = key(patch) if patch is not None else None
        if name is not None:
            waiting[name].append(index)
    matches = {}
    for index, patch in enumerate(new):
        name = key(patch) if patch is not None else None
        if name is not None and waiting.get(name):
            matches[index] = waiting[name].pop(0)
    return matches


def _longest_rise(values: Sequence[int]) -> set[int]:
    """Return the longest increasing subsequence of distinct `values` (patience sorting)."""
    tops: list[int] = []  # smallest last value of a run of each length
    before: dict[int, int | None] = {}
    for value in values:
        at = bisect_left(tops, value)
        before[value] = tops[at - 1] if at else None
        tops[at : at + 1] = [value]
    rise, value_or_none = set(), tops[-1] if tops else None
    while value_or_none is not None:
        rise.add(value_or_none)
        value_or_none = before[value_or_none]
    return rise
