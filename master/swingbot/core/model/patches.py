"""Stored patches of a watched branch. Commits are 40 hex digits."""

from __future__ import annotations

from dataclasses import dataclass

from swingbot.core.model.statuses import PatchState


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A commit on the first-parent line of a branch.

    `patch_id` is that of `git patch-id --verbatim`. For a merge it is "merge:" and the merged
    commits, as it is the same as long as they are; for an empty commit it is "". `parent` is the
    first parent; "" for a root.
    """

    commit: str
    parent: str
    patch_id: str
    subject: str
    author: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchPatch:
    """A patch of a branch and its state after the last move; `was` is its previous version."""

    patch: Patch
    state: PatchState
    was: Patch | None = None
