"""Measure a tip that has the fix which a person named for an incident, and decide whether the
metric has recovered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swingbot.core.incident.level import AT_THE_TIP, IN_ITS_NEW_VERSION, check, check_spread
from swingbot.core.incident.model import Incident, Sighting
from swingbot.core.model import ids
from swingbot.core.model.comparison_row import row_at
from swingbot.core.model.records import Bisection, Comparison, NewComparison, Tree, base_and_head
from swingbot.core.plan.boot_numbers import BootPurpose
from swingbot.core.thresholds import ATTRIBUTE_SPREAD_BOOTS, FIX_BOOTS, FIX_BOOTS_REPEATABLE
from swingbot.service.incident.attribute import change_of, named_in, of_spread
from swingbot.service.incident.keep import OURSELVES, fix_answered
from swingbot.service.kernel.variants import variant_of
from swingbot.service.ports import GitError, Lab, Transaction


def check_fixes(lab: Lab, tx: Transaction) -> None:
    """Measure the first tip that has the fix of each open incident, then decide from the result."""
    for number in (
        incident.id for incident in tx.incidents.in_status("open") if incident.fixed_by is not None
    ):
        incident = tx.incidents.get(number)
        if incident is None or incident.status != "open" or incident.fixed_by is None:
            continue  # a person has changed it in the meantime
        if incident.fix_check is None:
            _measure(lab, tx, incident, incident.fixed_by)
        elif not fix_answered(tx.incidents, incident):
            _decide(tx, incident)


def _measure(lab: Lab, tx: Transaction, incident: Incident, fix: str) -> None:
    for sighting in reversed(tx.sightings.of_incident(incident.id)):
        tree, bisection = tx.trees.get(sighting.tree), tx.bisections.get(sighting.bisection)
        assert bisection is not None
        if tree.tip_commit is None or not _has(lab, sighting, fix, tree.tip_commit):
            continue
        conclusion = tx.bisections.conclusion(bisection.id)
        culprit = named_in(conclusion, sighting.commit)
        comparison = tx.comparisons.add(
            NewComparison(
                kind="asked",
                tree=tree.id,
                arms=base_and_head(
                    variant_of(
                        lab.tools.git, lab.catalogue.kconfigs, tx.variants, tree, culprit["parent"]
                    ).id,
                    _tip(lab, tx, tree, tree.tip_commit),
                ),
                boots=_boots(lab, bisection, conclusion),
                parts=[(bisection.testbox, bisection.spec)],
                purpose=BootPurpose.FIX,
                request_key=f"fix:{incident.id}:{fix}:{tree.tip_commit}",
            )
        )
        tx.incidents.set_fix(incident.id, fix, comparison)
        return


def _boots(lab: Lab, bisection: Bisection, conclusion: Mapping[str, Any]) -> int:
    if of_spread(conclusion):
        return ATTRIBUTE_SPREAD_BOOTS
    repeatable = lab.catalogue.testboxes.known(bisection.testbox).repeatable
    return FIX_BOOTS_REPEATABLE if repeatable else FIX_BOOTS


def _tip(lab: Lab, tx: Transaction, tree: Tree, commit: str) -> int:
    lab.tools.git.keep(commit)
    return variant_of(lab.tools.git, lab.catalogue.kconfigs, tx.variants, tree, commit).id


def _has(lab: Lab, sighting: Sighting, fix: str, tip: str) -> bool:
    """Return whether the tip has both the culprit and the fix, or copies of them.

    A branch that dropped the culprit does not test a fix.
    """
    try:
        if not lab.tools.git.is_ancestor(sighting.commit, tip):
            return False
        if lab.tools.git.is_ancestor(fix, tip):
            return True
        patch_id = lab.tools.git.patch_ids([fix]).get(fix)
        return (
            patch_id is not None
            and lab.tools.git.find_patch(patch_id, fix, sighting.commit, tip) is not None
        )
    except GitError:
        return False  # the commit is not in the mirror yet


def _decide(tx: Transaction, incident: Incident) -> None:
    assert incident.fix_check is not None
    comparison = tx.comparisons.get(incident.fix_check)
    assert comparison is not None
    if comparison.status in ("waiting", "running"):
        return
    sighted = _asked_of(tx, incident, comparison)
    if sighted is None:
        return  # split off since then: it belongs to another incident now
    sighting, bisection = sighted
    row = row_at(tx.comparisons.rows(comparison.id), bisection.key)
    where = IN_ITS_NEW_VERSION if _is_version(tx, incident, comparison) else AT_THE_TIP
    conclusion = tx.bisections.conclusion(bisection.id)
    answer = (
        check_spread(conclusion["spread_ratio"], row, where)
        if of_spread(conclusion)
        else check(change_of(tx, sighting, bisection), row, where)
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


def _is_version(tx: Transaction, incident: Incident, comparison: Comparison) -> bool:
    """Return whether the comparison is that of a new version of the patch with its own parent
    (`check_versions`).
    """
    patch = tx.patches.get(incident.fixed_by or "")
    return (
        patch is not None
        and tx.variants.get(comparison.head).commit == patch.commit
        and tx.variants.get(comparison.base).commit == patch.parent
    )


def _asked_of(
    tx: Transaction, incident: Incident, comparison: Comparison
) -> tuple[Sighting, Bisection] | None:
    for sighting in reversed(tx.sightings.of_incident(incident.id)):
        bisection = tx.bisections.get(sighting.bisection)
        if (
            bisection is not None
            and sighting.tree == comparison.tree
            and (bisection.testbox, bisection.spec) in comparison.parts
        ):
            return sighting, bisection
    return None
