"""Map commits to the kernels to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from swingbot.core.model.records import TRUSTED, UNTRUSTED, CommitFacts, KernelTrust, Tree, Variant
from swingbot.core.model.statuses import VariantOrigin
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.service.ports import Git, GitError, RequestError
from swingbot.service.ports.trees import Trees
from swingbot.service.ports.variants import Variants
from swingbot_jobs.contract.build_key import build_key
from swingbot_jobs.contract.kconfig import Kconfigs, NoKconfig, joined
from swingbot_jobs.contract.trust import key_at
from swingbot_jobs.testbox.definition import Testbox


def variant_of(
    git: Git,
    kconfigs: Kconfigs,
    variants: Variants,
    tree: Tree,
    commit: str,
    origin: VariantOrigin = "branch",
    trust: KernelTrust | None = None,
) -> Variant:
    """Return the variant of `commit` with the tree's configuration and compiler, creating it if
    needed. `trust` None: use `trust_in`.
    """
    facts = git.facts(commit)
    trust = trust or trust_in(variants, tree, facts)
    key = key_at(
        build_key(facts.tree_hash, tree.kconfig, kconfigs[tree.kconfig], tree.compiler, 0),
        trust.level,
    )
    return variants.add(tree, facts, key, origin, trust=trust)


def on_testbox(kconfigs: Kconfigs, tree: Tree, testbox: Testbox) -> Tree:
    """Return `tree` with the configuration that its kernels have on `testbox`: that of the
    testbox's file with the tree's fragments on top, or the tree's.

    Raises RequestError if the two do not fit together.
    """
    try:
        return replace(tree, kconfig=kconfigs.on(testbox.kconfig, tree.kconfig))
    except NoKconfig as error:
        raise RequestError(f"testbox {testbox.name}: {error}") from None


def built_as(tree: Tree, variant: Variant) -> Tree:
    """Return `tree` with the configuration of `variant`, for kernels to be compared with it."""
    return replace(tree, kconfig=variant.kconfig)


def by_configuration(
    kconfigs: Kconfigs, tree: Tree, testboxes: KnownTestboxes, names: Sequence[str]
) -> list[tuple[Tree, list[str]]]:
    """Return `tree` as each of its kernels' configurations has it, with the testboxes of that one,
    in the order of `names`.

    Raises RequestError.
    """
    groups: dict[str, tuple[Tree, list[str]]] = {}
    for name in names:
        one = on_testbox(kconfigs, tree, testboxes.known(name))
        groups.setdefault(one.kconfig, (one, []))[1].append(name)
    return list(groups.values())


def trust_in(
    variants: Variants, tree: Tree, facts: CommitFacts, *, vouched: bool = False
) -> KernelTrust:
    """Return how far a commit is trusted: as far as its tree.

    A commit that swingbot made from a patch, or that was sent, is untrusted, unless an operator
    vouches or vouched for it. What a token vouches for is in `own_commits`.
    """
    if tree.trust == "untrusted" or (
        facts.made_here and not vouched and not variants.is_trusted(tree.id, facts.commit)
    ):
        return UNTRUSTED
    return TRUSTED


def in_layout(
    kconfigs: Kconfigs,
    trees: Trees,
    variants: Variants,
    variant: Variant,
    layout: int,
    origin: VariantOrigin = "branch",
) -> Variant:
    """Return the same code as `variant` in another layout; layout 0 is `variant` itself."""
    return (
        variant
        if layout == variant.layout
        else _again(kconfigs, trees, variants, variant, (variant.kconfig, layout), origin)
    )


def with_fragment(
    kconfigs: Kconfigs, trees: Trees, variants: Variants, variant: Variant, fragment: str
) -> Variant:
    """Return `variant` built with one more fragment of the kernel configuration
    (docs/kernel-builds.md). Raises NoKconfig if the fragment does not exist.
    """
    built = (joined(variant.kconfig, fragment), variant.layout)
    return _again(kconfigs, trees, variants, variant, built, "branch")


def _again(
    kconfigs: Kconfigs,
    trees: Trees,
    variants: Variants,
    variant: Variant,
    built: tuple[str, int],
    origin: VariantOrigin,
) -> Variant:
    """Return the commit of `variant` built by the same compiler in another configuration and
    layout.
    """
    kconfig, layout = built
    facts = CommitFacts(
        commit=variant.commit,
        tree_hash=variant.tree_hash,
        parents=(),
        subject=variant.subject,
        author=variant.author,
    )
    key = key_at(
        build_key(variant.tree_hash, kconfig, kconfigs.text(kconfig), variant.compiler, layout),
        variant.trust,
    )
    tree = replace(trees.get(variant.tree), kconfig=kconfig, compiler=variant.compiler)
    return variants.add(tree, facts, key, origin, layout, variant.kernel_trust)


def resolve_commit(git: Git, tree: Tree, ref: str) -> str:
    """Resolve a unique prefix, `base`, `tip`, tag or branch to a commit of the tree, fetching it if
    the mirror lacks it. Raises RequestError.
    """
    try:
        try:
            return git.resolve(tree.name, ref)
        except GitError as not_here:
            if "more than one" in str(not_here):
                raise
            return git.resolve_remote(tree.name, tree.url, ref)
    except GitError as error:
        raise RequestError(str(error)) from None
