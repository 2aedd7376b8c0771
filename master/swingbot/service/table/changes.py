"""Open a comparison for each change of a branch."""

from __future__ import annotations

from swingbot.core.model.records import NewComparison, base_and_head
from swingbot.service.kernel.variants import variant_of
from swingbot.service.ports import Lab, Transaction
from swingbot.service.watch.resolve_jobs import resolve_parts


def compare_changes(lab: Lab, tx: Transaction) -> None:
    """Open the comparison of each change that has none yet."""
    for change in tx.trees.changes_to_compare():
        tree = tx.trees.get(change.tree)
        old, new = (
            variant_of(lab.tools.git, lab.catalogue.kconfigs, tx.variants, tree, commit).id
            for commit in (change.old_commit, change.new_commit)
        )
        tx.comparisons.add(
            NewComparison(
                kind="watch",
                tree=tree.id,
                change=change.id,
                arms=base_and_head(old, new),
                boots=lab.settings.watch_boots,
                parts=resolve_parts(
                    lab.catalogue.programs,
                    lab.catalogue.testboxes,
                    tx.specs,
                    tree.job_files,
                    tree.testboxes,
                    {},
                    tree.trust,
                ),
            )
        )
