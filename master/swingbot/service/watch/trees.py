"""Register trees, poll their branches, and record moves as changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.access.urls import BadUrl, remote
from swingbot.core.limits import EFFECT_PCT
from swingbot.core.model.records import JobFile, Tree
from swingbot.core.plan.new_tip import matters, what_changed
from swingbot.core.text.nearest import meant_by
from swingbot.core.text.plain import cut
from swingbot.service.check_compiler import check_compiler
from swingbot.service.ports import Catalogue, Git, GitError, Lab, RequestError
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.watch.list_patches import patches_after
from swingbot.service.watch.resolve_jobs import (
    check_parts,
    pick_testboxes,
    refuse_lacking,
    resolve_parts,
)
from swingbot_jobs.contract.kconfig import NoKconfig
from swingbot_jobs.contract.trust import Trust

# as in the database; the name becomes part of refs in the mirror
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTree:
    """A branch to watch."""

    name: str
    url: str
    branch: str
    base: str  # a commit, tag or branch in that repository
    job_files: Sequence[JobFile]
    testboxes: Sequence[str]  # or groups
    paths: Sequence[str]
    kconfig: str
    compiler: str
    trust: Trust = "trusted"
    min_effect_pct: float | None = None  # smallest change of interest; None: each program's


def trust_of_new_tree(
    transaction: OpenTransaction, name: str, url: str, given: Trust | None
) -> Trust:
    """Return the level of a tree that is added, `given` by the operator or not.

    A tree that exists keeps its level; a path of this host is trusted. Raises RequestError for a
    URL without a level.
    """
    if given is not None:
        return given
    with transaction("read tree") as tx:
        existing = tx.trees.named(name)
    if existing is not None:
        return existing.trust
    try:
        local = remote(url).protocol == "file"
    except BadUrl as error:
        raise RequestError(str(error)) from None
    if not local:
        raise RequestError(
            f"{url} is not on this host: say with --trust how far its code is trusted. "
            "trusted: you trust everyone who can push to it; its kernels share objects and compiler"
            " cache with other builds, are built without walls on hosts that have none, and boot on"
            " every testbox. untrusted: it may contain anyone's code; its kernels are built only"
            " behind walls, share nothing, and boot only on testboxes that accept untrusted kernels"
        )
    return "trusted"


def check_min_effect(pct: float | None) -> None:
    """Raise RequestError unless `pct` is a percentage within the limits, or None."""
    least, most = EFFECT_PCT
    if pct is not None and not least <= pct <= most:
        raise RequestError(
            f"the minimum effect must be {least:g} to {most:g} percent, got {pct:g}",
            key="min-effect",
        )


def _check_kconfig(catalogue: Catalogue, kconfig: str, testboxes: Sequence[str]) -> None:
    """Raise RequestError unless `kconfig` exists and fits what the testboxes' files name."""
    try:
        catalogue.kconfigs.text(kconfig)
        for name in testboxes:
            catalogue.kconfigs.on(catalogue.testboxes.known(name).kconfig, kconfig)
    except NoKconfig as error:
        raise RequestError(str(error)) from None


def add_tree(lab: Lab, new: NewTree) -> Tree:
    """Register a tree. Nothing is recorded unless all of it is valid. Raises RequestError.

    Adding the same tree again with equal values returns the existing tree. What can be refused
    without the repository is refused before anything is fetched.
    """
    check_min_effect(new.min_effect_pct)
    with lab.transaction("check compiler") as tx:
        check_compiler(tx.compilers, new.compiler)
    testboxes = pick_testboxes(lab.catalogue.testboxes, lab.settings, new.testboxes, new.trust)
    _check_kconfig(lab.catalogue, new.kconfig, testboxes)
    if not new.job_files:
        raise RequestError("a tree needs at least one job: give --job FILE")
    _check_before_fetch(
        lab.transaction,
        lab.tools.git,
        lab.catalogue,
        new,
        testboxes,
    )
    try:
        tip = lab.tools.git.fetch_branch(new.name, new.url, new.branch)
        base_commit = lab.tools.git.resolve_remote(new.name, new.url, new.base)
        if not lab.tools.git.is_kernel(tip):
            raise RequestError(
                f"branch {new.branch!r} of {new.url} is not a kernel tree: its top directory lacks "
                "Makefile, Kconfig or init/"
            )
        if not lab.tools.git.is_ancestor(base_commit, tip):
            raise RequestError(
                f"base {base_commit[:12]} is not an ancestor of the tip {tip[:12]} of branch "
                f"{new.branch!r}; give a --base that is an ancestor of the branch"
            )
        lab.tools.git.keep(base_commit)
        lab.tools.git.call(new.name, "base", base_commit)
    except GitError as error:
        raise RequestError(str(error)) from None
    tree = Tree(
        id=0,
        name=new.name,
        url=new.url,
        branch=new.branch,
        base_commit=base_commit,
        tip_commit=None,
        job_files=tuple(new.job_files),
        testboxes=tuple(testboxes),
        paths=tuple(new.paths),
        kconfig=new.kconfig,
        compiler=new.compiler,
        trust=new.trust,
        min_effect_pct=new.min_effect_pct,
    )
    with lab.transaction("add tree") as tx:
        resolve_parts(
            lab.catalogue.programs,
            lab.catalogue.testboxes,
            tx.specs,
            new.job_files,
            testboxes,
            {},
            new.trust,
        )
        existing = tx.trees.named(new.name)
        if existing is None:
            return tx.trees.add(tree)
    _refuse_other(existing, _identity(tree))
    return existing


def _check_before_fetch(
    transaction: OpenTransaction,
    git: Git,
    catalogue: Catalogue,
    new: NewTree,
    names: Sequence[str],
) -> None:
    """Raise RequestError if the tree is refused whatever its repository contains."""
    if not _NAME.fullmatch(new.name) or ".." in new.name or new.name.endswith((".", ".lock")):
        raise RequestError(
            f"{cut(new.name, 80)!r} is not a valid name of a tree; use 1 to 63 letters, digits,"
            " '.', '_' and '-'; begin with a letter or digit, and do not use '..', or '.' or"
            " '.lock' at the end"
        )
    try:
        git.check_source(new.url, (new.branch, new.base))
    except GitError as error:
        raise RequestError(str(error)) from None
    programs, testboxes = catalogue.programs, catalogue.testboxes
    for name, jobs in check_parts(programs, testboxes, new.job_files, names, {}, new.trust):
        kconfig = catalogue.kconfigs.on(testboxes.known(name).kconfig, new.kconfig)
        refuse_lacking(catalogue, kconfig, jobs)
    with transaction("check tree") as tx:
        existing = tx.trees.named(new.name)
    if existing is not None:
        _refuse_other(
            existing,
            {
                "url": new.url,
                "branch": new.branch,
                "job_files": tuple(new.job_files),
                "testboxes": tuple(names),
                "paths": tuple(new.paths),
                "kconfig": new.kconfig,
                "compiler": new.compiler,
                "trust": new.trust,
                "min_effect_pct": new.min_effect_pct,
            },
        )


def _refuse_other(existing: Tree, requested: dict[str, object]) -> None:
    """Raise RequestError if a tree of the same name has other values than those requested."""
    differs = [key for key, value in requested.items() if getattr(existing, key) != value]
    if differs:
        raise RequestError(
            f"tree {existing.name!r} already exists with a different {', '.join(differs)};"
            f" `swingbot tree remove {existing.name}` first, or choose another name"
        )


def _identity(tree: Tree) -> dict[str, object]:
    return {
        k: getattr(tree, k)
        for k in (
            "url",
            "branch",
            "base_commit",
            "job_files",
            "testboxes",
            "paths",
            "kconfig",
            "compiler",
            "trust",
            "min_effect_pct",
        )
    }


def known_tree(transaction: OpenTransaction, name: str) -> Tree:
    """Return the tree with this name. Raises RequestError if it does not exist."""
    with transaction("read tree") as tx:
        tree = tx.trees.named(name)
        names = [] if tree is not None else [one.name for one in tx.trees.all()]
    if tree is None:
        raise RequestError(
            f"tree {name!r} does not exist; {meant_by(name, names)}`swingbot tree list`"
            " lists all trees, `swingbot tree add` adds one"
        )
    return tree


def tree_of(transaction: OpenTransaction, git: Git, name: str | None, refs: Sequence[str]) -> Tree:
    """Return the tree named `name`; without a name, the only tree that has all of `refs`.

    Raises RequestError.
    """
    if name is not None:
        return known_tree(transaction, name)
    with transaction("choose tree") as tx:
        trees = tx.trees.all()
    if len(trees) == 1:
        return trees[0]
    having = [tree for tree in trees if all(_has(git, tree, ref) for ref in refs)]
    if len(having) == 1:
        return having[0]
    what = ", ".join(refs)
    if not having:
        raise RequestError(f"no tree has {what}; name one with --tree: {_names(trees)}")
    raise RequestError(f"several trees have {what}; choose one with --tree: {_names(having)}")


def _names(trees: Sequence[Tree]) -> str:
    return ", ".join(sorted(tree.name for tree in trees)) or "none"


def _has(git: Git, tree: Tree, ref: str) -> bool:
    """Return whether the branch of the tree, as far as it was fetched, contains a commit."""
    try:
        commit = git.resolve(tree.name, ref)
        ends = (tree.tip_commit, tree.base_commit)
        return any(end is not None and git.is_ancestor(commit, end) for end in ends)
    except GitError:
        return False


def poll_tree(transaction: OpenTransaction, git: Git, tree: Tree) -> str | None:
    """Poll the branch. Returns the problem in one sentence, or None."""
    try:
        if tree.tip_commit is not None and git.remote_tip(tree.url, tree.branch) == tree.tip_commit:
            moved = None
        else:
            tip = git.fetch_branch(tree.name, tree.url, tree.branch)
            git.keep(tip)
            moved = what_changed(
                base=tree.base_commit,
                last_tip=tree.tip_commit,
                tip=tip,
                is_ancestor=git.is_ancestor,
                merge_base=git.merge_base,
            )
        if (
            moved is not None
            and moved.kind != "first"
            and not matters(git.paths_between(moved.old, moved.new), tree.paths)
        ):
            moved = None  # retried with the next move, from the same old tip
        patches = patches_after(transaction, git, tree, moved) if moved is not None else []
    except GitError as error:
        with transaction("note poll") as tx:
            tx.trees.note_poll(tree.id, str(error))
        return str(error)
    with transaction("record change") as tx:
        tx.trees.note_poll(tree.id, None)
        if moved is not None:
            tx.trees.add_change(tree.id, moved.kind, moved.old, moved.new)
            tx.patches.set_branch(tree.id, patches)
    return None
