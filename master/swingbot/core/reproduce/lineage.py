"""Which commits a kernel of a table has beyond the other kernels, and so which patches make it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MOST_OWN: Final = 50  # commits of one row whose patches a kit has


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """`commits`, oldest first, lead from `below`, the commit of another kernel, to the kernel's own."""

    below: str
    commits: Sequence[str]


def lineages(first_parents: Mapping[str, Sequence[str]]) -> dict[str, Lineage]:
    """The lineage of each kernel that has one, by commit.

    `first_parents` are the kernels' commits, each with itself and the first parents below it,
    newest first, as far as they are known. A kernel without another one within `MOST_OWN` commits
    below it has no lineage.
    """
    found = {}
    for commit, below in first_parents.items():
        lineage = _lineage(commit, below, first_parents.keys())
        if lineage is not None:
            found[commit] = lineage
    return found


def _lineage(commit: str, line: Sequence[str], kernels: Collection[str]) -> Lineage | None:
    for depth, ancestor in enumerate(line[: MOST_OWN + 1]):
        if ancestor != commit and ancestor in kernels:
            return Lineage(below=ancestor, commits=list(reversed(line[:depth])))
    return None


def chain(commit: str, known: Mapping[str, Lineage]) -> tuple[str, list[str]]:
    """Where the patches to `commit` start, and the commits of the kernels on the way, in order.

    A kernel without a lineage starts at itself, by no patch.
    """
    way: list[str] = []
    while (lineage := known.get(commit)) is not None:
        way.append(commit)
        commit = lineage.below
    return commit, way[::-1]
