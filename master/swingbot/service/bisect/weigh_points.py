"""Estimate, before any measurement, how likely each commit of a bisection is the culprit and how
long its kernel takes to build."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from swingbot.core.model.records import Variant
from swingbot.core.plan.costs import PAST_BUILDS, costs_of_points, learn, standing
from swingbot.core.plan.relevance import Objects, untouched, weight, weights
from swingbot.core.thresholds import PRIOR_NO_CODE
from swingbot.service.limits import OBJECT_LIST_BYTES
from swingbot.service.ports import Artifacts, Git, GitError, Tools
from swingbot.service.ports.builds import KernelBuilds


@dataclass(frozen=True, slots=True)
class Weighed:
    """Prior weights and build times in seconds, by point.

    Point 0 has weight 0, because no candidate commit leads to it.
    """

    weights: list[float]
    build_seconds: list[float]


def weigh_points(
    tools: Tools, builds: KernelBuilds, points: Sequence[tuple[Variant, float]]
) -> Weighed:
    """Return prior and build cost of `points` (with their weights), from all builds so far."""
    variants = [variant for variant, _ in points]
    steps = _steps(tools.git, variants)
    lists = builds.object_lists([variant.build_key for variant in variants])
    known = {
        idx: _objects(tools.artifacts, lists[variant.build_key])
        for idx, variant in enumerate(variants)
        if variant.build_key in lists
    }
    compiled = _compiled(tools.artifacts, builds, variants[0], known)
    relevance = [
        given
        * weight(paths, compiled)
        / weight(paths)
        * (PRIOR_NO_CODE if _changed_nothing(idx, paths, known) else 1.0)
        for idx, (paths, (_, given)) in enumerate(zip(steps, points[1:], strict=True), 1)
    ]
    return Weighed([0.0, *weights(relevance)], _costs(tools.git, builds, variants, steps, compiled))


def _steps(git: Git, variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return the paths that each commit changes; empty where git can no longer read the commit."""
    try:
        changed = git.paths_along(variants[0].commit, variants[-1].commit)
    except GitError:
        changed = {}
    return [changed.get(variant.commit, ()) for variant in variants[1:]]


def _compiled(
    artifacts: Artifacts, builds: KernelBuilds, some: Variant, known: Mapping[int, Objects]
) -> frozenset[str] | None:
    """Return the objects of this configuration: those of all built kernels in the range, or else of
    the latest build."""
    if known:
        return frozenset().union(*known.values())
    sha256 = builds.any_object_list(some.kconfig, some.compiler)
    return frozenset(_objects(artifacts, sha256)) or None if sha256 is not None else None


def _objects(artifacts: Artifacts, sha256: str) -> Objects:
    """Load an objects.json; empty if it is not in the artifact store."""
    try:
        with artifacts.open(sha256) as file:
            return read_objects(file.read(OBJECT_LIST_BYTES + 1))
    except OSError:
        return {}


def read_objects(text: bytes) -> Objects:
    """Parse an objects.json; empty if it is not in the format that swingbot's workers write.

    Lists and further objects are not in it, and would take 25 times their text in memory.
    """
    if len(text) > OBJECT_LIST_BYTES or b"[" in text or text.count(b"{") > 1:
        return {}
    try:
        objects = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return (
        {str(path): str(digest) for path, digest in objects.items()}
        if isinstance(objects, dict)
        else {}
    )


def _changed_nothing(idx: int, paths: Sequence[str], known: Mapping[int, Objects]) -> bool:
    """Return whether the kernels built next before and after commit `idx` have the same objects
    wherever it changed something."""
    before = max((point for point in known if point < idx), default=None)
    after = min((point for point in known if point >= idx), default=None)
    return (
        before is not None and after is not None and untouched(paths, known[before], known[after])
    )


def _costs(
    git: Git,
    builds: KernelBuilds,
    variants: Sequence[Variant],
    steps: Sequence[Sequence[str]],
    compiled: frozenset[str] | None,
) -> list[float]:
    """Return the cost of each point on the cheapest build worker, in seconds."""
    history = builds.past(variants[0].kconfig, variants[0].compiler, PAST_BUILDS)

    def between(old: str, new: str) -> Iterable[str] | None:
        try:
            return git.paths_between(old, new)
        except GitError:
            return None

    learnt = learn(history, between, compiled)
    at = {variant.commit: idx for idx, variant in enumerate(variants)}
    trees = standing(history)
    each = [
        costs_of_points(
            learnt,
            steps,
            at.get(tree),
            None if tree in at else between(tree, variants[0].commit),
            compiled,
        )
        for tree in trees
    ]
    return (
        [min(seconds) for seconds in zip(*each, strict=True)]
        if each
        else costs_of_points(learnt, steps, None, None)
    )
