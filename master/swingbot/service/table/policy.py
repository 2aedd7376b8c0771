"""What a person over the web may request of what an operator may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from swingbot.core.model.records import Tree
from swingbot.service import limits
from swingbot.service.asked import commits as asked
from swingbot.service.asked.asker import check_tree
from swingbot.service.ports import Git, RequestError
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.service.table.kernels import TableKernel
from swingbot.service.table.request import TableRequest
from swingbot.service.watch.trees import tree_of


def restricted(
    transaction: OpenTransaction,
    git: Git,
    request: TableRequest,
) -> TableRequest:
    """Return the request of a person over the web with commits of the tree's branch, or that the
    person sent, alone, without options reserved for operators; that of an operator as it is, but
    for names of commits that were sent with it. Raises RequestError, NotYours.
    """
    if request.asked_by is None:
        return replace(request, kernels=request.kernels.at(request.sent.names))
    kernels, person = request.kernels, request.asked_by
    tree = tree_of(transaction, git, request.tree, kernels.refs)
    check_tree(person, tree.name)
    patches = sum(len(row.series.patches) for row in kernels.rows)
    if patches > limits.WEB_ROWS:
        raise RequestError(
            f"there are {patches} patches; at most {limits.WEB_ROWS} are accepted over the web."
            " Ask an operator to fetch them as a branch"
        )
    commits, foreign = asked.asked_commits(git, tree, kernels.refs, person, request.sent)
    return replace(
        request,
        tree=tree.name,
        kernels=kernels.at(commits),
        most_rows=limits.WEB_ROWS,
        vouched=False,
        off_branch=foreign,
    )


def off_branch(
    git: Git, tree: Tree, request: TableRequest, kernels: Iterable[TableKernel]
) -> set[str]:
    """Return the commits of kernels that a person over the web named, or made, and that the tree's
    branch lacks. Raises RequestError.
    """
    if not request.off_branch:
        return set()
    return asked.off_branch(git, tree, [kernel.facts.commit for kernel in kernels])
