"""Plan and queue an experiment for a requester who is not an operator, under the rules of
`submit.py`.

Commits must be on the tree's own branch as fetched into the mirror. Patches are never trusted, and
nothing is fetched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from swingbot.service.ports import Lab, RequestError
from swingbot.service.table.experiment import (
    ExperimentRequest,
    Planned,
    plan_experiment,
    request_experiment,
)
from swingbot.service.table.submit import MOST_BOOTS, branch_commit
from swingbot.service.watch.trees import tree_of

MOST_KERNELS: Final = 50


def plan_asked(lab: Lab, request: ExperimentRequest) -> Planned:
    """Return the plan and cost of `request`. Nothing is recorded. Raises RequestError."""
    return _planned(lab, _restricted(lab, request))


def ask_experiment(lab: Lab, request: ExperimentRequest) -> int:
    """Queue `request` and return the number of the experiment. Raises RequestError."""
    allowed = _restricted(lab, request)
    _planned(lab, allowed)
    return request_experiment(lab, allowed)


def _planned(lab: Lab, request: ExperimentRequest) -> Planned:
    planned = plan_experiment(lab, request)
    if len(planned.arms) > MOST_KERNELS:
        raise _too_many(len(planned.arms))
    return planned


def _restricted(lab: Lab, request: ExperimentRequest) -> ExperimentRequest:
    """Return `request` limited to commits of the tree's branch, without options reserved for
    operators.
    """
    if not 1 <= request.boots <= MOST_BOOTS:
        raise RequestError(
            f"boots per kernel must be between 1 and {MOST_BOOTS}, got {request.boots}"
        )
    kernels = request.kernels
    patches = len(kernels.series.patches) if kernels.series else 0
    if patches >= MOST_KERNELS:
        raise _too_many(patches + 1)
    tree = tree_of(lab.transaction, lab.tools.git, request.tree, kernels.refs)
    ends = kernels.range and (
        branch_commit(lab, tree, kernels.range[0]),
        branch_commit(lab, tree, kernels.range[1]),
    )
    base = None if kernels.base is None else branch_commit(lab, tree, kernels.base)
    kernels = replace(kernels, range=ends, base=base, named=())
    return replace(request, tree=tree.name, kernels=kernels, overrides={}, axes=(), trusted=False)


def _too_many(kernels: int) -> RequestError:
    return RequestError(
        f"{kernels} kernels are too many: at most {MOST_KERNELS} can be requested over the web;"
        " narrow the range, or use `swingbot experiment`"
    )
