"""Other commits with the level of a commit, to tell a change of code from an odd image.

An image may be slower by itself, by where its code lies. The ends of a range have no neighbour
beyond: a commit before the good one, or after the bad one, takes its place. For every other commit
it is the commit without the patch of an older one, applied to a temporary index; nothing that git
shows changes. Patches that only touch documentation make no other image and are passed over.
"""

from __future__ import annotations

import re
from typing import Final

from swingbot.app.bisect_run.commit_range import CommitRange
from swingbot.app.bisect_run.repository import Repository
from swingbot.core.text.numbers import count

_WANTED: Final = 4  # controls of a commit: as many as neighbours are measured beside a suspect
_TRIED: Final = 12  # older commits whose patches are tried; others conflict or say nothing
_DOCUMENTATION: Final = re.compile(
    r"(^|/)(Documentation|docs?)/|\.(md|rst|txt)$|(^|/)(MAINTAINERS|README|\.gitignore|\.mailmap)$"
)


class ControlImages:
    """Finds the controls of commits, once each."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._of: dict[tuple[str, int], tuple[str, ...]] = {}

    def __call__(self, whole: CommitRange, idx: int) -> tuple[str, ...]:
        """Full ids of up to `_WANTED` commits, the best ones first; () if there are none."""
        key = whole.shas[idx], len(whole.shas) - 1 - idx
        if key not in self._of:
            self._of[key] = self._found(whole, idx)
        return self._of[key]

    def missing(self, whole: CommitRange, idx: int) -> str:
        """Why a commit has fewer controls than wanted; "" if it has them."""
        if (found := len(self(whole, idx))) >= _WANTED:
            return ""
        sha, last = whole.shas[idx][:12], len(whole.shas) - 1
        end = {0: "the good end ", last: "the bad end "}.get(idx, "")
        if found:
            return f"{end}{sha} has only {count(found, 'other image')} of its level"
        if end:
            when = "older" if idx == 0 else "later"
            return f"{end}{sha} has no {when} commit beside it that changes code"
        return f"no older patch can be taken out of {sha}"

    def to_settle(self, by: str, whole: CommitRange, idx: int) -> str:
        """What settles the suspect `idx`: `by`, and if that is other images, why some are missing
        of it or of its parent."""
        missing = [why for i in (idx - 1, idx) if (why := self.missing(whole, i))]
        return f"{by} (--layouts); {', '.join(missing)}" if missing and "layout" in by else by

    def _found(self, whole: CommitRange, idx: int) -> tuple[str, ...]:
        git, sha, last = self.repository, whole.shas[idx], len(whole.shas) - 1
        # equal trees: CMD tells commits apart by their id, so that a tree means nothing to it
        by_id = git.tree(whole.shas[0]) == git.tree(whole.shas[-1])
        older = git.older(whole.shas[0], _TRIED)
        beside = older[1:] if idx == 0 else git.later(sha, _TRIED) if idx == last else []
        found = [other for other in beside if by_id or self._another(sha, other)][:_WANTED]
        for patch in () if by_id else older:
            if len(found) >= _WANTED:
                break
            if idx == 0 or not self._code(git.files(patch)):
                continue
            if (without := git.without(sha, patch)) is not None:
                found.append(without)
        return tuple(found)

    def _another(self, sha: str, other: str) -> bool:
        return self._code(self.repository.files_between(sha, other))

    @staticmethod
    def _code(files: list[str]) -> bool:
        return any(not _DOCUMENTATION.search(name) for name in files)
