"""Open a comparison for each change of a branch."""

from __future__ import annotations

from swingbot.core.model.records import NewComparison, base_and_head
from swingbot.service.kernel.variants import by_configuration, variant_of
from swingbot.service.ports import Lab, Transaction
from swingbot.service.watch.resolve_jobs import resolve_parts


def compare_changes(lab: Lab, tx: Transaction) -> None:
    """Open the comparisons of each change that has none yet, one for each kernel configuration of
    the testboxes of its tree.
    """
    for change in tx.trees.changes_to_compare():
        watched, testboxes = tx.trees.get(change.tree), lab.catalogue.testboxes
        for tree, names in by_configuration(
            lab.catalogue.kconfigs, watched, testboxes, watched.testboxes
        ):
            old, new = (
                variant_of(lab.tools.git, lab.catalogue.kconfigs, tx.variants, tree, commit).id
                for commit in (change.old_commit, change.new_commit)
            )
            tx.comparisons.add(
                NewComparison(
                    kind="watch",
                    tree=tree.id,
                    change=change.id,
                    request_key=f"change:{change.id}:{tree.kconfig}",
                    arms=base_and_head(old, new),
                    boots=lab.settings.watch_boots,
                    parts=resolve_parts(
                        lab.catalogue.programs,
                        testboxes,
                        tx.specs,
                        tree.job_files,
                        names,
                        {},
                        tree.trust,
                    ),
                )
            )
