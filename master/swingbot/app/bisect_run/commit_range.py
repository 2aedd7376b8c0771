"""Turn a range of git commits into a chain: each commit is a child of the previous one.

The chain follows first parents where they lead back to the good commit. A merge on the chain
represents every commit that it merges; if it is the culprit, its branch becomes a range of its own
(`branches`). Pure: git is read elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swingbot.core.bisect.thresholds import PATHS_WRONG

_NUMBERS: Final = re.compile(r"\b(commit |one of )(\d{1,9}(?:, \d{1,9})*)\b(?! commits)")


@dataclass(frozen=True, slots=True)
class RangeCommit:
    sha: str
    parents: tuple[str, ...]
    subject: str


@dataclass(frozen=True, slots=True)
class CommitRange:
    """`shas[0]` is good, the last one is bad.

    `weights[i]` is the number of commits that commit i adds (0 for the good one).
    """

    shas: tuple[str, ...]
    weights: tuple[float, ...]
    commits: dict[str, RangeCommit]  # all of good..bad, including merged branches
    relevant: frozenset[str] = frozenset()  # commits that touch the paths; empty: no paths

    def brought(self, idx: int) -> set[str]:
        """Return the commits that commit `idx` of the chain adds, itself included."""
        before = _reachable(self.parent(idx), self.commits, ())
        return _reachable(self.shas[idx], self.commits, before)

    def elsewhere(self, sha: str) -> bool:
        """Return whether a commit, with what it merges, touches none of the paths."""
        if not self.relevant:
            return False
        added = self.brought(self.shas.index(sha)) if sha in self.shas else {sha}
        return self.relevant.isdisjoint(added)

    def between(self, good: int, bad: int) -> CommitRange:
        """Return the part of the chain whose ends are these two."""
        weights = (0.0, *self.weights[good + 1 : bad + 1])
        return replace(self, shas=self.shas[good : bad + 1], weights=weights)

    def subject(self, sha: str) -> str:
        commit = self.commits.get(sha)
        return commit.subject if commit else ""

    def in_words(self, reason: str) -> str:
        """Replace the engine's `commit 12` and `one of 12, 13` by commit ids, and "kernel" by
        "commit".
        """

        def named(match: re.Match[str]) -> str:
            places = dict.fromkeys(int(idx) for idx in match[2].split(", "))
            if max(places) >= len(self.shas):
                return match[0]
            return match[1] + ", ".join(self.shas[idx][:12] for idx in places)

        return _NUMBERS.sub(named, reason).replace("kernel", "commit")

    def parent(self, idx: int) -> str:
        return self.shas[idx - 1]


def make_range(
    good: str, bad: str, commits: Sequence[RangeCommit], relevant: Collection[str] | None = None
) -> CommitRange:
    """Build the chain from `commits`, in the order of `git log --topo-order GOOD..BAD`.

    Commits outside `relevant`, if given, share the prior probability PATHS_WRONG.
    Raises ValueError if `bad` does not descend from `good`.
    """
    by_sha = {commit.sha: commit for commit in commits}
    chain = _chain(good, bad, commits, by_sha)
    wanted = frozenset(by_sha.keys() & set(relevant or ()))
    odds = PATHS_WRONG / (1.0 - PATHS_WRONG)
    other = odds * len(wanted) / max(1, len(by_sha) - len(wanted))
    weights, seen = [0.0], {good}
    for sha in chain[1:]:
        added = _reachable(sha, by_sha, seen)
        seen |= added
        touching = added & wanted if wanted else added
        weights.append(len(touching) + other * (len(added) - len(touching)))
    return CommitRange(shas=tuple(chain), weights=tuple(weights), commits=by_sha, relevant=wanted)


def branches(commit: RangeCommit, parent: str) -> tuple[str, ...]:
    """Tips merged by a merge on the chain, without the chain itself."""
    return tuple(p for p in commit.parents if p != parent)


def _chain(
    good: str, bad: str, commits: Sequence[RangeCommit], by_sha: dict[str, RangeCommit]
) -> list[str]:
    """Commits from good to bad, each a parent of the next.

    Takes the first parent that leads back to good.
    """
    after = {good}
    for commit in reversed(commits):
        if any(parent in after for parent in commit.parents):
            after.add(commit.sha)
    if bad not in after:
        raise ValueError(f"{bad} does not descend from {good}")
    chain = [bad]
    while chain[-1] != good:
        chain.append(next(parent for parent in by_sha[chain[-1]].parents if parent in after))
    return chain[::-1]


def _reachable(sha: str, by_sha: dict[str, RangeCommit], seen: Collection[str]) -> set[str]:
    """Commits of the range reachable from `sha` (inclusive) and not in `seen`."""
    reachable, todo = set(), [sha]
    while todo:
        one = todo.pop()
        if one in by_sha and one not in seen and one not in reachable:
            reachable.add(one)
            todo.extend(by_sha[one].parents)
    return reachable
