"""Decide what a new tip means: which two commits to compare, and whether it is relevant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from swingbot.core.model.statuses import ChangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTip:
    """Compare `new` with `old`; `kind` is how the branch moved."""

    kind: ChangeKind
    old: str
    new: str


def what_changed(
    *,
    base: str,
    last_tip: str | None,
    tip: str,
    is_ancestor: Callable[[str, str], bool],
    merge_base: Callable[[str, str], str | None],
) -> NewTip | None:
    """Classify the `tip` found by a poll; None if the branch did not move.

    The first tip is compared with the tree's base. A tip that does not descend from the last one
    (such as a rebased linux-next) is compared with the merge base, or with the tree's base if they
    share no history.
    """
    if tip == last_tip:
        return None
    if last_tip is None:
        return NewTip(kind="first", old=base, new=tip)
    if is_ancestor(last_tip, tip):
        return NewTip(kind="advance", old=last_tip, new=tip)
    return NewTip(kind="rebase", old=merge_base(last_tip, tip) or base, new=tip)


def matters(paths: Sequence[str], globs: Sequence[str]) -> bool:
    """Return True if a change of `paths` is relevant to a tree with `globs` (none: all paths).

    `*` matches slashes.
    """
    return not globs or any(
        fnmatchcase(path, glob) or path.startswith(glob.rstrip("/") + "/")
        for path in paths
        for glob in globs
    )
