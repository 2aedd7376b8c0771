"""List the patches of a branch after it moved."""

from __future__ import annotations

from swingbot.core.model.patches import BranchPatch
from swingbot.core.model.records import Tree
from swingbot.core.plan.branch_patches import grown
from swingbot.core.plan.new_tip import NewTip
from swingbot.service import limits
from swingbot.service.ports import Git
from swingbot.service.ports.transaction import OpenTransaction


def patches_after(
    transaction: OpenTransaction, git: Git, tree: Tree, moved: NewTip
) -> list[BranchPatch]:
    """Return the patches of the branch, aligned with those of its last tip; only the latest if the
    branch is long. Raises GitError.
    """
    with transaction("read patches") as tx:
        known = tx.patches.branch(tree.id)
    rebased = moved.kind == "rebase" and tree.tip_commit is not None
    old = git.patches(moved.old, tree.tip_commit) if rebased and tree.tip_commit else []
    patches = grown(known, moved.old, old, git.patches(moved.old, moved.new))
    return patches[-limits.LISTED_PATCHES :]
