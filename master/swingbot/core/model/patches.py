"""Patches of a watched branch, as remembered. Commits are 40 hex digits."""

from __future__ import annotations

from dataclasses import dataclass

from swingbot.core.model.statuses import PatchState


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A commit on the first-parent line of a branch.

    `patch_id` is that of `git patch-id --stable`; of a merge "merge:" and what it brought in, for it is the same as long as
    that is; "" for a commit that changes nothing. `parent` is the first; "" for a root.
    """

    commit: str
    parent: str
    patch_id: str
    subject: str
    author: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchPatch:
    """A patch of a branch, and what the last move of the branch made of it; `was` is that patch at the tip before."""

    patch: Patch
    state: PatchState
    was: Patch | None = None
