"""Find the commits, and thus the patches, that a kernel of a table has on top of another kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from swingbot.core import limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """`commits`, oldest first, lead from `below`, the commit of another kernel, to the kernel's
    own.
    """

    below: str
    commits: Sequence[str]


def lineages(first_parents: Mapping[str, Sequence[str]]) -> dict[str, Lineage]:
    """Return the lineages of the kernels by commit.

    `first_parents` are the kernels' commits, each with itself and the first parents below it,
    newest first, as far as known. A kernel has no lineage if there is no other
    kernel within `limits.KIT_COMMITS` commits below it.
    """
    result = {}
    for commit, below in first_parents.items():
        lineage = _lineage(commit, below, first_parents.keys())
        if lineage is not None:
            result[commit] = lineage
    return result


def _lineage(commit: str, line: Sequence[str], kernels: Collection[str]) -> Lineage | None:
    for depth, ancestor in enumerate(line[: limits.KIT_COMMITS + 1]):
        if ancestor != commit and ancestor in kernels:
            return Lineage(below=ancestor, commits=list(reversed(line[:depth])))
    return None


def chain(commit: str, known: Mapping[str, Lineage]) -> tuple[str, list[str]]:
    """Return the commit to which the patches of `commit` apply, and the kernels in between, in
    order.

    A kernel without a lineage starts at itself and needs no patches.
    """
    kernels: list[str] = []
    while (lineage := known.get(commit)) is not None:
        kernels.append(commit)
        commit = lineage.below
    return commit, kernels[::-1]
