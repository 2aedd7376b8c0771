"""Queue a comparison for a requester who is not an operator. The cost is estimated first, and only
commits in the mirror can be compared.

Nothing is fetched for an untrusted requester, because a server may offer anybody's commits under
the name of a trusted tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from swingbot.core.model.records import Tree
from swingbot.service.ports import GitError, Lab, RequestError
from swingbot.service.table.request import DEFAULT_BOOTS, ComparisonRequest, request_comparison
from swingbot.service.watch.resolve_jobs import pick_testboxes, resolve_parts
from swingbot.service.watch.trees import tree_of
from swingbot_jobs.contract.trust import Trust

MOST_BOOTS: Final = 50  # per side
MOST_PATCHES: Final = 50  # git applies each of them while other requests wait
# A name, with at most one step back from it: git's other ways to name a commit search the whole
# history.
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}(?:[~^][0-9]{0,4})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCost:
    """Estimated cost of a request.

    `at_most`: some testbox has no timed similar boot, so its deadline is used.
    """

    boots: int  # on both sides and all testboxes
    testbox_seconds: float
    at_most: bool
    testboxes: Sequence[str]


def _trust(tree: Tree, request: ComparisonRequest) -> Trust:
    return "untrusted" if request.patches else tree.trust


def foresee_cost(lab: Lab, request: ComparisonRequest) -> RequestCost:
    """Estimate the boots of `request` and their time.

    Raises RequestError if the request is invalid.
    """
    tree = tree_of(lab.transaction, lab.tools.git, request.tree, [request.base, request.head])
    _check(request)
    _commits(lab, tree, request)
    each = 2 * (request.boots or DEFAULT_BOOTS)
    seconds, at_most = 0.0, False
    with lab.transaction("foresee cost") as tx:
        testboxes = pick_testboxes(
            lab.catalogue.testboxes,
            lab.settings,
            request.testboxes or tree.testboxes,
            _trust(tree, request),
            asked=bool(request.testboxes),
        )
        parts = resolve_parts(
            lab.catalogue.programs,
            lab.catalogue.testboxes,
            tx.specs,
            request.job_files or tree.job_files,
            testboxes,
            {},
            _trust(tree, request),
        )
        for testbox, spec in parts:
            usual = tx.boots.seconds(testbox, spec)
            at_most = at_most or usual is None
            seconds += each * (lab.settings.deadline_boot if usual is None else usual)
    return RequestCost(
        boots=each * len(parts),
        testbox_seconds=seconds,
        at_most=at_most,
        testboxes=[testbox for testbox, _ in parts],
    )


def ask_comparison(lab: Lab, request: ComparisonRequest) -> int:
    """Queue `request` and return the number of the comparison. Raises RequestError."""
    tree = tree_of(lab.transaction, lab.tools.git, request.tree, [request.base, request.head])
    _check(request)
    base, head = _commits(lab, tree, request)
    return request_comparison(
        lab, replace(request, base=base, head=head, overrides={}, trusted=False)
    )


def _check(request: ComparisonRequest) -> None:
    if request.boots is not None and not 1 <= request.boots <= MOST_BOOTS:
        raise RequestError(
            f"boots per side must be between 1 and {MOST_BOOTS}, got {request.boots}"
        )
    if len(request.patches) > MOST_PATCHES:
        raise RequestError(
            f"the series has {len(request.patches)} patches; at most {MOST_PATCHES} are "
            "accepted over"
            " the web. Ask an operator to fetch it as a branch"
        )


def _commits(lab: Lab, tree: Tree, request: ComparisonRequest) -> tuple[str, str]:
    return branch_commit(lab, tree, request.base), branch_commit(lab, tree, request.head)


def branch_commit(lab: Lab, tree: Tree, ref: str) -> str:
    """Return the commit that `ref` names in the tree's own branch, as fetched into the mirror.

    The mirror also holds other trees and other people's patches. Raises RequestError.
    """
    if _REF.fullmatch(ref) is None or ".." in ref:
        raise RequestError(
            f"{ref[:80]!r} is not a valid commit name: give a hash or a prefix of one, a tag,"
            " `base` or `tip`"
        )
    try:
        commit = lab.tools.git.resolve(tree.name, "tip" if ref == tree.branch else ref)
    except GitError as error:
        raise RequestError(
            f"{error}; over the web only fetched commits can be compared: give a hash or a "
            "prefix of one,"
            f" a tag, `base`, or `tip` of branch {tree.branch}"
        ) from None
    ends = (tree.tip_commit, tree.base_commit)
    if not any(end is not None and lab.tools.git.is_ancestor(commit, end) for end in ends):
        raise RequestError(
            f"{commit[:12]} is not in branch {tree.branch} of tree {tree.name} as last fetched,"
            " so it cannot be compared over the web"
        )
    return commit
