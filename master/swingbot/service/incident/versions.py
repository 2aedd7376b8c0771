"""The versions of a culprit's patch: as it was found, as it was changed since, and which of them a rebased branch has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swingbot.core.incident.model import Incident, Sighting
from swingbot.core.model import ids
from swingbot.core.model.patches import BranchPatch, Patch
from swingbot.core.model.records import NewComparison, Tree, base_and_head
from swingbot.core.plan.boot_numbers import BootPurpose
from swingbot.core.thresholds import FIX_BOOTS, FIX_BOOTS_REPEATABLE
from swingbot.service.incident.keep import OURSELVES, fix_answered
from swingbot.service.kernel.variants import variant_of
from swingbot.service.ports import GitError, Lab, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a culprit's patch by any commit that has it."""

    commit: str
    patch_id: str | None


def still_slow(tx: Transaction, incident: Incident, sightings: Sequence[Sighting]) -> list[Version]:
    """The versions that are known to make the change: those that bisections found, and a changed one that was measured and still does."""
    found = [Version(commit=s.commit, patch_id=s.patch_id) for s in sightings]
    answer = _checked(tx, incident)
    if answer is not None and answer.get("answer") == "still" and incident.fixed_by is not None:
        patch = tx.patches.get(incident.fixed_by)
        if patch is not None:
            found.append(Version(commit=patch.commit, patch_id=patch.patch_id))
    return found


def _checked(tx: Transaction, incident: Incident) -> Mapping[str, Any] | None:
    """What the latest check of its fix came to; None where that has no answer."""
    if incident.fix_check is None or not fix_answered(tx.incidents, incident):
        return None
    last = tx.incidents.last_event(incident.id, "checked")
    return last[1] if last is not None else None


def changed_version(
    tx: Transaction,
    incident: Incident,
    sightings: Sequence[Sighting],
    branch: Sequence[BranchPatch],
) -> Patch | None:
    """The one patch of the branch with the culprit's subject and author that is no version we know; None where a known one stands there."""
    known = {s.patch_id for s in sightings if s.patch_id}
    if incident.fixed_by is not None and (fix := tx.patches.get(incident.fixed_by)) is not None:
        known.add(fix.patch_id)
    culprit = tx.variants.get(sightings[-1].culprit)
    there = [each.patch for each in branch if each.state != "dropped"]
    if not known or any(patch.patch_id in known for patch in there):
        return None
    alike = [
        patch
        for patch in there
        if patch.patch_id
        and patch.parent
        and (patch.subject, patch.author) == (culprit.subject, culprit.author)
    ]
    return alike[0] if len(alike) == 1 else None


def unmeasured_version(
    tx: Transaction, incident: Incident, tree: int, branch: Sequence[BranchPatch]
) -> tuple[Sighting, Patch] | None:
    """The changed version that the branch of `tree` has of an open incident's patch and that should be measured now, with the sighting that it is held against."""
    here = [
        s
        for s in tx.sightings.of_incident(incident.id)
        if s.tree == tree and s.comparison is not None
    ]
    if not here or waits_for_fix(tx, incident):
        return None
    measured = tx.comparisons.get(here[-1].comparison or 0)
    new = changed_version(tx, incident, here, branch)
    if new is None or measured is None or measured.status != "done":
        return None
    return here[-1], new


def waits_for_fix(tx: Transaction, incident: Incident) -> bool:
    """Whether a fix that was named, by a person or here, has still to be measured or judged."""
    return incident.fixed_by is not None and (
        incident.fix_check is None or not fix_answered(tx.incidents, incident)
    )


def check_versions(lab: Lab, tx: Transaction) -> None:
    """Where a branch has a culprit's patch in a version that nobody measured: measure it against its own parent. `check_fixes` decides by that."""
    branches: dict[int, list[BranchPatch]] = {}
    for found in tx.incidents.in_status("open"):
        trees = (s.tree for s in reversed(tx.sightings.of_incident(found.id)))
        for tree in dict.fromkeys(trees):
            if tree not in branches:
                branches[tree] = tx.patches.branch(tree)
            new = unmeasured_version(tx, found, tree, branches[tree])
            if new is not None:
                _measure(lab, tx, found.id, *new)
                break


def _measure(lab: Lab, tx: Transaction, number: int, sighting: Sighting, new: Patch) -> None:
    incident = tx.incidents.get(number)  # nobody says anything about it until this ends
    bisection = tx.bisections.get(sighting.bisection)
    assert incident is not None
    assert bisection is not None
    if incident.status != "open":
        return
    tree = tx.trees.get(sighting.tree)
    try:
        base, head = (kept_variant(lab, tx, tree, commit) for commit in (new.parent, new.commit))
    except GitError:
        return  # the mirror cannot be read: the next round asks again
    repeatable = lab.testboxes.known(bisection.testbox).repeatable
    comparison = tx.comparisons.add(
        NewComparison(
            kind="asked",
            tree=tree.id,
            arms=base_and_head(base, head),
            boots=FIX_BOOTS_REPEATABLE if repeatable else FIX_BOOTS,
            parts=[(bisection.testbox, bisection.spec)],
            purpose=BootPurpose.FIX,
            request_key=f"fix:{number}:{new.commit}:{new.commit}",
        )
    )
    tx.incidents.set_fix(number, new.commit, comparison)
    tx.incidents.add_event(
        number,
        "fixed-by",
        OURSELVES,
        f"{tree.name}, branch {tree.branch}, has a new version of the patch; it is measured in c{comparison}",
        {"commit": new.commit, "comparison": ids.show("comparison", comparison)},
    )


def kept_variant(lab: Lab, tx: Transaction, tree: Tree, commit: str) -> int:
    """The variant of a commit that no rebase takes away any more."""
    lab.git.keep(commit)
    return variant_of(lab, tx, tree, commit).id
