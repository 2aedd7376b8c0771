"""Queue a comparison for somebody who is not the operator: what it costs is foreseen first, and only what the mirror has is compared.

Nothing is fetched on a stranger's word: a server may well hand out commits of anybody under the name of a tree that is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from swingbot.core.model.records import Tree
from swingbot.service.compare.request import DEFAULT_BOOTS, ComparisonRequest, request_comparison
from swingbot.service.ports import GitError, Lab, RequestError
from swingbot.service.watch.resolve_jobs import pick_testboxes, resolve_parts
from swingbot.service.watch.trees import tree_of
from swingbot_jobs.contract.trust import Trust

MOST_BOOTS: Final = 50  # a side
MOST_PATCHES: Final = 50  # each is applied by git while other requests wait
# A name, and at most one step back from it: git's other ways to name a commit search the whole history.
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}(?:[~^][0-9]{0,4})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCost:
    """What a request is foreseen to take. `at_most`: no boot like it was timed yet on some testbox, so its deadline counts."""

    boots: int  # of both sides and all testboxes
    box_seconds: float
    at_most: bool
    testboxes: Sequence[str]


def _trust(tree: Tree, request: ComparisonRequest) -> Trust:
    return "untrusted" if request.patches else tree.trust


def foresee_cost(lab: Lab, request: ComparisonRequest) -> RequestCost:
    """What the boots of `request` take. Raises RequestError for a request that makes no sense."""
    tree = tree_of(lab, request.tree, [request.base, request.head])
    _check(request)
    _commits(lab, tree, request)
    each = 2 * (request.boots or DEFAULT_BOOTS)
    seconds, at_most = 0.0, False
    with lab.transaction("foresee cost") as tx:
        boxes = pick_testboxes(
            lab,
            request.testboxes or tree.testboxes,
            _trust(tree, request),
            asked=bool(request.testboxes),
        )
        parts = resolve_parts(
            lab,
            tx.specs,
            request.job_files or tree.job_files,
            boxes,
            {},
            _trust(tree, request),
        )
        for testbox, spec in parts:
            usual = tx.boots.seconds(testbox, spec)
            at_most = at_most or usual is None
            seconds += each * (lab.policies.deadline_boot if usual is None else usual)
    return RequestCost(
        boots=each * len(parts),
        box_seconds=seconds,
        at_most=at_most,
        testboxes=[testbox for testbox, _ in parts],
    )


def ask_comparison(lab: Lab, request: ComparisonRequest) -> int:
    """Queue what `request` says; the comparison's number. Raises RequestError."""
    tree = tree_of(lab, request.tree, [request.base, request.head])
    _check(request)
    base, head = _commits(lab, tree, request)
    return request_comparison(
        lab, replace(request, base=base, head=head, overrides={}, trusted=False)
    )


def _check(request: ComparisonRequest) -> None:
    if request.boots is not None and not 1 <= request.boots <= MOST_BOOTS:
        raise RequestError(f"boots a side are 1 to {MOST_BOOTS}, not {request.boots}")
    if len(request.patches) > MOST_PATCHES:
        raise RequestError(
            f"the series has {len(request.patches)} patches; at most {MOST_PATCHES} are taken over"
            " the web. Ask an operator to fetch it as a branch"
        )


def _commits(lab: Lab, tree: Tree, request: ComparisonRequest) -> tuple[str, str]:
    return branch_commit(lab, tree, request.base), branch_commit(lab, tree, request.head)


def branch_commit(lab: Lab, tree: Tree, ref: str) -> str:
    """The commit that `ref` names in the tree's own branch, as the mirror has it.

    The mirror holds other trees and other people's patches too. Raises RequestError.
    """
    if _REF.fullmatch(ref) is None or ".." in ref:
        raise RequestError(
            f"{ref[:80]!r} is not a valid commit name: give a hash or its beginning, a tag,"
            " `base` or `tip`"
        )
    try:
        commit = lab.git.resolve(tree.name, "tip" if ref == tree.branch else ref)
    except GitError as error:
        raise RequestError(
            f"{error}; over the web only what was fetched can be compared: a hash or its beginning,"
            f" a tag, `base`, or `tip` of branch {tree.branch}"
        ) from None
    ends = (tree.tip_commit, tree.base_commit)
    if not any(end is not None and lab.git.is_ancestor(commit, end) for end in ends):
        raise RequestError(
            f"{commit[:12]} is not in branch {tree.branch} of tree {tree.name} as it stands now,"
            " so it cannot be compared over the web"
        )
    return commit
