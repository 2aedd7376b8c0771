"""Compare a tip whose range contains expected changes with the new level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swingbot.core.incident.level import log_ratio
from swingbot.core.incident.model import Expected
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import Comparison
from swingbot.service.kernel.variants import built_as, variant_of
from swingbot.service.ports import Git, GitError
from swingbot.service.ports.incidents import Incidents
from swingbot.service.ports.trees import Trees
from swingbot.service.ports.variants import Variants
from swingbot_jobs.contract.kconfig import Kconfigs


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedInRange:
    """An expected change and the commit in this history that makes it: the commit that a person
    named, or a rebased copy."""

    expected: Expected
    commit: str

    @property
    def effect(self) -> float:
        return log_ratio(self.expected.change_pct)


def expected_within(
    git: Git, variants: Variants, incidents: Incidents, comparison: Comparison, row: ComparisonRow
) -> list[ExpectedInRange]:
    """Return the expected changes of the row's metric between base and head of the comparison, one
    for each incident."""
    known = incidents.expected_changes(*row.key)
    if not known:
        return []
    base, head = variants.get(comparison.base).commit, variants.get(comparison.head).commit
    by_incident: dict[int, ExpectedInRange] = {}
    for expected in known:
        commit = (
            copy_within(git, expected.commit, expected.patch_id, base, head)
            if expected.incident not in by_incident
            else None
        )
        if commit is not None:
            by_incident[expected.incident] = ExpectedInRange(expected=expected, commit=commit)
    return list(by_incident.values())


def copy_within(git: Git, commit: str, patch_id: str | None, base: str, head: str) -> str | None:
    """Return the commit, or its copy, in base..head; None if it is not there, or if the base
    already has a copy."""
    try:
        if git.is_ancestor(commit, base):
            return None
        if patch_id and git.find_patch(patch_id, commit, commit, base) is not None:
            return None
        if git.is_ancestor(commit, head):
            return commit
        return git.find_patch(patch_id, commit, base, head) if patch_id else None
    except GitError:
        return None  # the mirror is unreadable: assume that the range has no copy


def level_after(
    git: Git,
    kconfigs: Kconfigs,
    trees: Trees,
    variants: Variants,
    comparison: Comparison,
    expected: Sequence[ExpectedInRange],
) -> int | None:
    """Return the variant of the first commit of the branch that has all expected changes: later
    tips are compared with it. None if that is the tip itself."""
    base, head = variants.get(comparison.base).commit, variants.get(comparison.head).commit
    try:
        line = git.first_parents(base, head)
        low, high = 0, len(line) - 1
        while low < high:
            middle = (low + high) // 2
            if all(git.is_ancestor(within.commit, line[middle]) for within in expected):
                high = middle
            else:
                low = middle + 1
        if not line or low == len(line) - 1:
            return None
        git.keep(line[low])
        return variant_of(
            git,
            kconfigs,
            variants,
            built_as(trees.get(comparison.tree), variants.get(comparison.head)),
            line[low],
        ).id
    except GitError:
        return None


def named(expected: Sequence[ExpectedInRange]) -> str:
    """Return the names of the incidents, for use in a sentence."""
    return ", ".join(ids.show("incident", within.expected.incident) for within in expected)
