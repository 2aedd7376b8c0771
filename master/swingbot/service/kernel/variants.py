"""Map commits to the kernels to measure."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model.records import CommitFacts, Tree, Variant
from swingbot.core.model.statuses import VariantOrigin
from swingbot.service.ports import GitError, Lab, RequestError, Transaction
from swingbot.service.ports.variants import Variants
from swingbot_jobs.contract.build_key import build_key
from swingbot_jobs.contract.kconfig import joined
from swingbot_jobs.contract.trust import Trust, key_at


def variant_of(
    lab: Lab,
    tx: Transaction,
    tree: Tree,
    commit: str,
    origin: VariantOrigin = "branch",
    trust: Trust | None = None,
) -> Variant:
    """Return the variant of `commit` with the tree's configuration and compiler, creating it if
    needed. `trust` None: use `trust_in`.
    """
    facts = lab.git.facts(commit)
    level = trust or trust_in(tx.variants, tree, facts)
    key = key_at(
        build_key(facts.tree_hash, tree.kconfig, lab.kconfigs[tree.kconfig], tree.compiler, 0),
        level,
    )
    return tx.variants.add(tree, facts, key, origin, trust=level)


def trust_in(variants: Variants, tree: Tree, facts: CommitFacts, *, vouched: bool = False) -> Trust:
    """Return how far a commit is trusted: as far as its tree.

    A commit that swingbot made from a patch is untrusted, unless an operator vouches or vouched for
    it.
    """
    if tree.trust == "untrusted" or (
        facts.made_here and not vouched and not variants.is_trusted(tree.id, facts.commit)
    ):
        return "untrusted"
    return "trusted"


def in_layout(lab: Lab, tx: Transaction, variant: Variant, layout: int) -> Variant:
    """Return the same code as `variant` in another layout; layout 0 is `variant` itself."""
    return (
        variant if layout == variant.layout else _again(lab, tx, variant, variant.kconfig, layout)
    )


def with_fragment(lab: Lab, tx: Transaction, variant: Variant, fragment: str) -> Variant:
    """Return `variant` built with one more fragment of the kernel configuration
    (docs/kernel-builds.md). Raises NoKconfig if the fragment does not exist.
    """
    return _again(lab, tx, variant, joined(variant.kconfig, fragment), variant.layout)


def _again(lab: Lab, tx: Transaction, variant: Variant, kconfig: str, layout: int) -> Variant:
    """Return the commit of `variant` built by the same compiler, in another configuration or
    layout.
    """
    facts = CommitFacts(
        commit=variant.commit,
        tree_hash=variant.tree_hash,
        parents=(),
        subject=variant.subject,
        author=variant.author,
    )
    key = key_at(
        build_key(variant.tree_hash, kconfig, lab.kconfigs.text(kconfig), variant.compiler, layout),
        variant.trust,
    )
    tree = replace(tx.trees.get(variant.tree), kconfig=kconfig, compiler=variant.compiler)
    return tx.variants.add(tree, facts, key, "branch", layout, variant.trust)


def resolve_commit(lab: Lab, tree: Tree, ref: str) -> str:
    """Resolve a unique prefix, `base`, `tip`, tag or branch to a commit of the tree, fetching it if
    the mirror lacks it. Raises RequestError.
    """
    try:
        try:
            return lab.git.resolve(tree.name, ref)
        except GitError as not_here:
            if "more than one" in str(not_here):
                raise
            return lab.git.resolve_remote(tree.name, tree.url, ref)
    except GitError as error:
        raise RequestError(str(error)) from None
