"""What a person over the web may request of what an operator may.

Commits must be on the tree's own branch as fetched into the mirror: nothing is fetched, because a
server may offer anybody's commits under the name of a trusted tree. Patches are never trusted.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from swingbot.core.model.records import Tree
from swingbot.service import limits
from swingbot.service.ports import Git, GitError, RequestError
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.table.kernels import short
from swingbot.service.table.request import TableRequest
from swingbot.service.watch.trees import tree_of

# A name, with at most one step back from it: git's other ways to name a commit search the whole
# history.
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}(?:[~^][0-9]{0,4})?")


def restricted(
    transaction: OpenTransaction,
    git: Git,
    request: TableRequest,
) -> TableRequest:
    """Return the request of a person over the web with commits of the tree's branch alone, without
    options reserved for operators; that of an operator as it is. Raises RequestError.
    """
    if request.asked_by is None:
        return request
    kernels = request.kernels
    tree = tree_of(transaction, git, request.tree, kernels.refs)
    patches = sum(len(row.series.patches) for row in kernels.rows)
    if patches > limits.WEB_ROWS:
        raise RequestError(
            f"there are {patches} patches; at most {limits.WEB_ROWS} are accepted over the web."
            " Ask an operator to fetch them as a branch"
        )
    first = kernels.base or (kernels.range and kernels.range[0])
    ends = kernels.range and (
        branch_commit(git, tree, kernels.range[0]),
        branch_commit(git, tree, kernels.range[1]),
    )
    base = None if kernels.base is None else branch_commit(git, tree, kernels.base)
    rows = [
        row if row.ref is None else replace(row, ref=branch_commit(git, tree, row.ref))
        for row in kernels.rows
    ]
    return replace(
        request,
        tree=tree.name,
        kernels=replace(
            kernels, range=ends, base=base, base_name=first and short(first), rows=rows
        ),
        most_rows=limits.WEB_ROWS,
        vouched=False,
    )


def branch_commit(git: Git, tree: Tree, ref: str) -> str:
    """Return the commit that `ref` names in the tree's own branch, as fetched into the mirror.

    The mirror also holds other trees and other people's patches. Raises RequestError.
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
    ends = (tree.tip_commit, tree.base_commit)
    if not any(end is not None and git.is_ancestor(commit, end) for end in ends):
        raise RequestError(
            f"{commit[:12]} is not in branch {tree.branch} of tree {tree.name} as last fetched,"
            " so it cannot be compared over the web"
        )
    return commit
