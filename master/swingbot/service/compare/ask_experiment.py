"""Plan and queue an experiment for somebody who is not the operator, under the rules of `ask.py`.

Commits are those of the tree's own branch as the mirror has it; patches are never trusted, and
nothing is fetched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from swingbot.service.compare.experiment import (
    ExperimentRequest,
    Planned,
    plan_experiment,
    request_experiment,
)
from swingbot.service.compare.submit import MOST_BOOTS, branch_commit
from swingbot.service.ports import Lab, RequestError
from swingbot.service.watch.trees import tree_of

MOST_KERNELS: Final = 50


def plan_asked(lab: Lab, request: ExperimentRequest) -> Planned:
    """What `request` comes to and costs. Nothing is recorded. Raises RequestError."""
    return _planned(lab, _restricted(lab, request))


def ask_experiment(lab: Lab, request: ExperimentRequest) -> int:
    """Queue `request`; the experiment's number. Raises RequestError."""
    allowed = _restricted(lab, request)
    _planned(lab, allowed)
    return request_experiment(lab, allowed)


def _planned(lab: Lab, request: ExperimentRequest) -> Planned:
    planned = plan_experiment(lab, request)
    if len(planned.arms) > MOST_KERNELS:
        raise _too_many(len(planned.arms))
    return planned


def _restricted(lab: Lab, request: ExperimentRequest) -> ExperimentRequest:
    """`request` with commits of the tree's branch and nothing that takes an operator."""
    if not 1 <= request.boots <= MOST_BOOTS:
        raise RequestError(f"boots of each kernel are 1 to {MOST_BOOTS}, not {request.boots}")
    wanted = request.kernels
    patches = len(wanted.series.patches) if wanted.series else 0
    if patches >= MOST_KERNELS:
        raise _too_many(patches + 1)
    tree = tree_of(lab, request.tree, wanted.refs)
    ends = wanted.range and (
        branch_commit(lab, tree, wanted.range[0]),
        branch_commit(lab, tree, wanted.range[1]),
    )
    base = None if wanted.base is None else branch_commit(lab, tree, wanted.base)
    kernels = replace(wanted, range=ends, base=base, named=())
    return replace(request, tree=tree.name, kernels=kernels, overrides={}, axes=(), trusted=False)


def _too_many(kernels: int) -> RequestError:
    return RequestError(
        f"{kernels} kernels are too many over the web, where {MOST_KERNELS} are the most;"
        " narrow the range, or use `swingbot experiment`"
    )
