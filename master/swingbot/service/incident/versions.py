"""Find the versions of a culprit's patch: the one that was found, changed versions, and which of
them a rebased branch has.
"""

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
from swingbot.service.kernel.variants import built_as, variant_of
from swingbot.service.ports import Catalogue, Git, GitError, Transaction
from swingbot.service.ports.incidents import Incidents
from swingbot.service.ports.patches import Patches
from swingbot.service.ports.variants import Variants
from swingbot_jobs.contract.kconfig import Kconfigs


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a culprit's patch, with any commit that has it."""

    commit: str
    patch_id: str | None


def still_slow(
    patches: Patches, incidents: Incidents, incident: Incident, sightings: Sequence[Sighting]
) -> list[Version]:
    """Return the versions known to make the change: those that bisections found, and a changed
    version that was measured and still makes it.
    """
    versions = [Version(commit=s.commit, patch_id=s.patch_id) for s in sightings]
    answer = _checked(incidents, incident)
    if answer is not None and answer.get("answer") == "still" and incident.fixed_by is not None:
        patch = patches.get(incident.fixed_by)
        if patch is not None:
            versions.append(Version(commit=patch.commit, patch_id=patch.patch_id))
    return versions


def _checked(incidents: Incidents, incident: Incident) -> Mapping[str, Any] | None:
    """Return the details of the latest check of a fix; None if it has no answer."""
    if incident.fix_check is None or not fix_answered(incidents, incident):
        return None
    last = incidents.last_event(incident.id, "checked")
    return last[1] if last is not None else None


def changed_version(
    patches: Patches,
    variants: Variants,
    incident: Incident,
    sightings: Sequence[Sighting],
    branch: Sequence[BranchPatch],
) -> Patch | None:
    """Return the one patch of the branch with the culprit's subject and author that is not a known
    version; None if the branch has a known version.
    """
    known = {s.patch_id for s in sightings if s.patch_id}
    if incident.fixed_by is not None and (fix := patches.get(incident.fixed_by)) is not None:
        known.add(fix.patch_id)
    culprit = variants.get(sightings[-1].culprit)
    present = [each.patch for each in branch if each.state != "dropped"]
    if not known or any(patch.patch_id in known for patch in present):
        return None
    alike = [
        patch
        for patch in present
        if patch.patch_id
        and patch.parent
        and (patch.subject, patch.author) == (culprit.subject, culprit.author)
    ]
    return alike[0] if len(alike) == 1 else None


def unmeasured_version(
    tx: Transaction, incident: Incident, tree: int, branch: Sequence[BranchPatch]
) -> tuple[Sighting, Patch] | None:
    """Return the changed version of an open incident's patch in the branch of `tree` that should be
    measured now, with the sighting to compare it with; None if there is none.
    """
    sightings = [
        s
        for s in tx.sightings.of_incident(incident.id)
        if s.tree == tree and s.comparison is not None
    ]
    if not sightings or waits_for_fix(tx.incidents, incident):
        return None
    measured = tx.comparisons.get(sightings[-1].comparison or 0)
    new = changed_version(tx.patches, tx.variants, incident, sightings, branch)
    if new is None or measured is None or measured.status != "done":
        return None
    return sightings[-1], new


def waits_for_fix(incidents: Incidents, incident: Incident) -> bool:
    """Return whether a fix, named by a person or found by swingbot, still has to be measured or
    judged.
    """
    return incident.fixed_by is not None and (
        incident.fix_check is None or not fix_answered(incidents, incident)
    )


def check_versions(git: Git, catalogue: Catalogue, tx: Transaction) -> None:
    """Measure a new version of a culprit's patch against its own parent.

    `check_fixes` decides from the result.
    """
    branches: dict[int, list[BranchPatch]] = {}
    for incident in tx.incidents.in_status("open"):
        trees = (s.tree for s in reversed(tx.sightings.of_incident(incident.id)))
        for tree in dict.fromkeys(trees):
            if tree not in branches:
                branches[tree] = tx.patches.branch(tree)
            new = unmeasured_version(tx, incident, tree, branches[tree])
            if new is not None:
                _measure(git, catalogue, tx, incident.id, *new)
                break


def _measure(
    git: Git, catalogue: Catalogue, tx: Transaction, number: int, sighting: Sighting, new: Patch
) -> None:
    incident = tx.incidents.get(number)  # locks the incident until the transaction ends
    bisection = tx.bisections.get(sighting.bisection)
    assert incident is not None
    assert bisection is not None
    if incident.status != "open":
        return
    tree = built_as(tx.trees.get(sighting.tree), tx.variants.get(sighting.culprit))
    try:
        base, head = (
            kept_variant(git, catalogue.kconfigs, tx.variants, tree, commit)
            for commit in (new.parent, new.commit)
        )
    except GitError:
        return  # the mirror is unreadable: retry in the next round
    repeatable = catalogue.testboxes.known(bisection.testbox).repeatable
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
        f"{tree.name}, branch {tree.branch}, has a new version of the patch; it is measured in "
        f"c{comparison}",
        {"commit": new.commit, "comparison": ids.show("comparison", comparison)},
    )


def kept_variant(git: Git, kconfigs: Kconfigs, variants: Variants, tree: Tree, commit: str) -> int:
    """Return the variant of a commit, and protect the commit from garbage collection after a
    rebase.
    """
    git.keep(commit)
    return variant_of(git, kconfigs, variants, tree, commit).id
