"""What a person over the web may request of what an operator may.

Commits must be on the tree's own branch as fetched into the mirror, or be sent by the person:
nothing is fetched, because a server may offer anybody's commits under the name of a trusted tree.
Patches, and commits that the branch lacks, are never trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from swingbot.core.model.records import Tree
from swingbot.service import limits
from swingbot.service.ports import Git, GitError, QuarantinedGit, RequestError
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.table.asker import check_tree
from swingbot.service.table.kernels import TableKernel, short
from swingbot.service.table.request import TableRequest
from swingbot.service.watch.trees import tree_of

# A name, with at most one step back from it: git's other ways to name a commit search the whole
# history.
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}(?:[~^][0-9]{0,4})?")


def unbundle(git: QuarantinedGit, request: TableRequest) -> None:
    """Read the commits that a person over the web sent with a request. Raises RequestError."""
    if request.asked_by is None or request.sent.bundle is None:
        return
    try:
        git.unbundle(request.sent.bundle, request.asked_by.ref_name)
    except GitError as error:
        raise RequestError(str(error), key="range") from None


def restricted(
    transaction: OpenTransaction,
    git: Git,
    request: TableRequest,
) -> TableRequest:
    """Return the request of a person over the web with commits of the tree's branch, or that the
    person sent, alone, without options reserved for operators; that of an operator as it is. Raises
    RequestError, NotYours.
    """
    if request.asked_by is None:
        return request
    kernels, person = request.kernels, request.asked_by
    tree = tree_of(transaction, git, request.tree, kernels.refs)
    check_tree(person, tree.name)
    patches = sum(len(row.series.patches) for row in kernels.rows)
    if patches > limits.WEB_ROWS:
        raise RequestError(
            f"there are {patches} patches; at most {limits.WEB_ROWS} are accepted over the web."
            " Ask an operator to fetch them as a branch"
        )
    commits: dict[str, str] = {}
    foreign = False
    for ref in dict.fromkeys(kernels.refs):
        named = request.sent.names.get(ref, ref)
        try:
            commits[ref] = branch_commit(git, tree, named)
        except NotOnBranch as error:
            if not git.is_sent_by(person.ref_name, error.commit):
                raise
            commits[ref], foreign = error.commit, True
    first = kernels.base or (kernels.range and kernels.range[0])
    ends = kernels.range and (commits[kernels.range[0]], commits[kernels.range[1]])
    base = None if kernels.base is None else commits[kernels.base]
    rows = [row if row.ref is None else replace(row, ref=commits[row.ref]) for row in kernels.rows]
    return replace(
        request,
        tree=tree.name,
        kernels=replace(
            kernels, range=ends, base=base, base_name=first and short(first), rows=rows
        ),
        most_rows=limits.WEB_ROWS,
        vouched=False,
        off_branch=foreign,
    )


def off_branch(
    git: Git, tree: Tree, request: TableRequest, kernels: Iterable[TableKernel]
) -> set[str]:
    """Return the commits of kernels that a person over the web named, or made, and that the tree's
    branch lacks.
    """
    if not request.off_branch:
        return set()
    try:
        return git.outside([kernel.facts.commit for kernel in kernels], ends_of_branch(tree))
    except GitError as error:
        raise RequestError(str(error)) from None


def ends_of_branch(tree: Tree) -> list[str]:
    """Return the commits whose ancestors are the branch of a tree, as last fetched."""
    return [end for end in (tree.tip_commit, tree.base_commit) if end is not None]


class NotOnBranch(RequestError):
    """A commit is in the mirror, but not in the tree's branch."""

    def __init__(self, message: str, commit: str) -> None:
        super().__init__(message)
        self.commit = commit


def branch_commit(git: Git, tree: Tree, ref: str) -> str:
    """Return the commit that `ref` names in the tree's own branch, as fetched into the mirror.

    The mirror also holds other trees and other people's patches. Raises RequestError, NotOnBranch.
    """
    if _REF.fullmatch(ref) is None or ".." in ref:
        raise RequestError(
            f"{ref[:80]!r} is not a valid commit name: give a hash or a prefix of one, a tag,"
            " `base` or `tip`"
        )
    try:
        commit = git.resolve(tree.name, "tip" if ref == tree.branch else ref)
    except GitError as error:
        raise RequestError(
            f"{error}; over the web only fetched commits can be compared: give a hash or a "
            "prefix of one,"
            f" a tag, `base`, or `tip` of branch {tree.branch}"
        ) from None
    if not any(git.is_ancestor(commit, end) for end in ends_of_branch(tree)):
        raise NotOnBranch(
            f"{commit[:12]} is not in branch {tree.branch} of tree {tree.name} as last fetched,"
            " so it cannot be compared over the web",
            commit,
        )
    return commit
