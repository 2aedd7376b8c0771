"""Measure a tip that has the fix which a person named for an incident, and decide whether the
metric has recovered.
"""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.incident.level import AT_THE_TIP, IN_ITS_NEW_VERSION, check, check_spread
from swingbot.core.incident.model import Incident, Sighting
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import row_at
from swingbot.core.model.conclusion import EndedSearch
from swingbot.core.model.records import Bisection, Comparison, NewComparison, base_and_head
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.boot_numbers import BootPurpose
from swingbot.core.thresholds import ATTRIBUTE_SPREAD_BOOTS, FIX_BOOTS, FIX_BOOTS_REPEATABLE
from swingbot.service.incident.attribute import change_of
from swingbot.service.incident.keep import OURSELVES, fix_answered
from swingbot.service.incident.versions import kept_variant
from swingbot.service.kernel.variants import built_as, variant_of
from swingbot.service.ports import Catalogue, Git, GitError, Transaction
from swingbot.service.ports.bisections import Bisections
from swingbot.service.ports.patches import Patches
from swingbot.service.ports.variants import Variants


def check_fixes(git: Git, catalogue: Catalogue, tx: Transaction) -> None:
    """Measure the first tip that has the fix of each open incident, then decide from the result."""
    for number in (
        incident.id for incident in tx.incidents.in_status("open") if incident.fixed_by is not None
    ):
        incident = tx.incidents.get(number)
        if incident is None or incident.status != "open" or incident.fixed_by is None:
            continue  # a person has changed it in the meantime
        sightings = tx.sightings.of_incident(number)
        if incident.fix_check is None:
            _measure(git, catalogue, tx, incident, incident.fixed_by, sightings)
        elif not fix_answered(tx.incidents, incident):
            comparison = tx.comparisons.get(incident.fix_check)
            assert comparison is not None
            if comparison.status not in ("waiting", "running"):
                _decide(tx, incident, comparison, sightings)


def _measure(
    git: Git,
    catalogue: Catalogue,
    tx: Transaction,
    incident: Incident,
    fix: str,
    sightings: Sequence[Sighting],
) -> None:
    for sighting in reversed(sightings):
        tree, bisection = tx.trees.get(sighting.tree), tx.bisections.get(sighting.bisection)
        assert bisection is not None
        if tree.tip_commit is None or not _has(git, sighting, fix, tree.tip_commit):
            continue
        conclusion = tx.bisections.conclusion(bisection.id)
        culprit = conclusion.naming(sighting.commit)
        built = built_as(tree, tx.variants.get(sighting.culprit))
        comparison = tx.comparisons.add(
            NewComparison(
                kind="asked",
                tree=tree.id,
                arms=base_and_head(
                    variant_of(git, catalogue.kconfigs, tx.variants, built, culprit.parent).id,
                    kept_variant(git, catalogue.kconfigs, tx.variants, built, tree.tip_commit),
                ),
                boots=_boots(catalogue.testboxes, bisection, conclusion),
                parts=[(bisection.testbox, bisection.spec)],
                purpose=BootPurpose.FIX,
                request_key=f"fix:{incident.id}:{fix}:{tree.tip_commit}",
            )
        )
        tx.incidents.set_fix(incident.id, fix, comparison)
        return


def _boots(testboxes: KnownTestboxes, bisection: Bisection, conclusion: EndedSearch) -> int:
    if conclusion.of_spread:
        return ATTRIBUTE_SPREAD_BOOTS
    repeatable = testboxes.known(bisection.testbox).repeatable
    return FIX_BOOTS_REPEATABLE if repeatable else FIX_BOOTS


def _has(git: Git, sighting: Sighting, fix: str, tip: str) -> bool:
    """Return whether the tip has both the culprit and the fix, or copies of them.

    A branch that dropped the culprit does not test a fix.
    """
    try:
        if not git.is_ancestor(sighting.commit, tip):
            return False
        if git.is_ancestor(fix, tip):
            return True
        patch_id = git.patch_ids([fix]).get(fix)
        return (
            patch_id is not None and git.find_patch(patch_id, fix, sighting.commit, tip) is not None
        )
    except GitError:
        return False  # the commit is not in the mirror yet


def _decide(
    tx: Transaction, incident: Incident, comparison: Comparison, sightings: Sequence[Sighting]
) -> None:
    sighted = _asked_of(tx.bisections, sightings, comparison)
    if sighted is None:
        return  # split off since then: it belongs to another incident now
    sighting, bisection = sighted
    row = row_at(tx.comparisons.rows(comparison.id), bisection.key)
    where = (
        IN_ITS_NEW_VERSION
        if _is_version(tx.patches, tx.variants, incident, comparison)
        else AT_THE_TIP
    )
    conclusion = tx.bisections.conclusion(bisection.id)
    answer = (
        check_spread(conclusion.spread_ratio, row, where)
        if conclusion.spread_ratio is not None
        else check(change_of(tx.bisections, tx.comparisons, sighting, bisection), row, where)
    )
    detail = {
        "answer": answer.answer,
        "comparison": ids.show("comparison", comparison.id),
        "tip": tx.variants.get(comparison.head).commit,
        "commit": incident.fixed_by,
    }
    tx.incidents.add_event(incident.id, "checked", OURSELVES, answer.words, detail)
    if answer.answer == "back":
        tx.incidents.set_status(incident.id, "fixed")


def _is_version(
    patches: Patches, variants: Variants, incident: Incident, comparison: Comparison
) -> bool:
    """Return whether the comparison is that of a new version of the patch with its own parent
    (`check_versions`).
    """
    patch = patches.get(incident.fixed_by or "")
    return (
        patch is not None
        and variants.get(comparison.head).commit == patch.commit
        and variants.get(comparison.base).commit == patch.parent
    )


def _asked_of(
    bisections: Bisections, sightings: Sequence[Sighting], comparison: Comparison
) -> tuple[Sighting, Bisection] | None:
    for sighting in reversed(sightings):
        bisection = bisections.get(sighting.bisection)
        if (
            bisection is not None
            and sighting.tree == comparison.tree
            and (bisection.testbox, bisection.spec) in comparison.parts
        ):
            return sighting, bisection
    return None
