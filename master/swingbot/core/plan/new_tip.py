"""What a new tip means: which two commits to compare, and whether it matters at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from swingbot.core.model.statuses import ChangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTip:
    """Compare `new` with `old`; `kind` says how the tip came about."""

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
    """Say what a poll that found `tip` means; None if nothing moved.

    The first tip is compared with the tree's base. A tip that does not descend from the last one
    (a rebased linux-next, say) is compared with the merge base, or with the tree's base where the two share no history.
    """
    if tip == last_tip:
        return None
    if last_tip is None:
        return NewTip(kind="first", old=base, new=tip)
    if is_ancestor(last_tip, tip):
        return NewTip(kind="advance", old=last_tip, new=tip)
    return NewTip(kind="rebase", old=merge_base(last_tip, tip) or base, new=tip)


def matters(paths: Sequence[str], globs: Sequence[str]) -> bool:
    """Whether a change of `paths` concerns a tree that watches `globs` (all paths, if it names none). `*` crosses slashes."""
    return not globs or any(
        fnmatchcase(path, glob) or path.startswith(glob.rstrip("/") + "/")
        for path in paths
        for glob in globs
    )
