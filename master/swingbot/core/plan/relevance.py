"""The prior probability of a commit being the culprit.

Derivation: docs/statistics.md, "Costs and priors".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from swingbot.core.bisect.thresholds import HINT_FLOOR
from swingbot.core.model.statuses import PatchState
from swingbot.core.thresholds import (
    PRIOR_EVEN_SHARE,
    PRIOR_MAYBE_COMPILED,
    PRIOR_MOVED_PATCH,
    PRIOR_NO_CODE,
    PRIOR_SAME_PATCH,
)

_NO_CODE: Final = (
    "Documentation/",
    "LICENSES/",
    "samples/",
    "tools/",
    ".mailmap",
    "MAINTAINERS",
    "CREDITS",
)
# path -> sha256 of each object compiled from a .c file: a build's objects.json
Objects = Mapping[str, str]


def weight(
    paths: Sequence[str], compiled: frozenset[str] | None = None, arch: str = "x86"
) -> float:
    """Return the prior weight of a commit that changes `paths`; 1 for code of this kernel.

    `compiled` are the objects of any completed build of this configuration. Without it, every
    source counts as compiled.
    """
    return max((_of_path(path, compiled, arch) for path in paths), default=PRIOR_NO_CODE)


def _of_path(path: str, compiled: frozenset[str] | None, arch: str) -> float:
    if path.startswith(_NO_CODE) or (
        path.startswith("arch/") and not path.startswith(f"arch/{arch}/")
    ):
        return PRIOR_NO_CODE
    # Assembler, generators and boot code have no object in the list. Headers under include/ are
    # used everywhere.
    if compiled is None or path.startswith((f"arch/{arch}/", "include/", "scripts/")):
        return 1.0
    if f"{path[:-2]}.o" in compiled:
        return 1.0
    beside = path.rpartition("/")[0] + "/"
    if not any(other.startswith(beside) for other in compiled):
        return PRIOR_NO_CODE
    return PRIOR_MAYBE_COMPILED if path.endswith(".c") else 1.0


def of_patch(state: PatchState) -> float:
    """Return the factor for a patch of a rebased branch whose last tip did not show the change."""
    return {"same": PRIOR_SAME_PATCH, "moved": PRIOR_MOVED_PATCH}.get(state, 1.0)


def untouched(paths: Sequence[str], before: Objects, after: Objects) -> bool:
    """Return True if each source that a commit touched has the same object in the builds around it.

    Only for commits that touch compiled sources and nothing else: effects of headers and Kconfig
    show in other objects.
    """
    own = [f"{path[:-2]}.o" for path in paths if path.endswith(".c")]
    return len(own) == len(paths) > 0 and all(
        before.get(path) is not None and before.get(path) == after.get(path) for path in own
    )


def weights(relevance: Sequence[float]) -> list[float]:
    """Return the prior of each commit, with sum 1.

    Proportional to relevance, with a floor of `PRIOR_EVEN_SHARE`/n. Uniform without any relevance.
    """
    if not relevance:
        return []
    total = sum(relevance)
    even = 1.0 / len(relevance)
    return [
        (1.0 - PRIOR_EVEN_SHARE) * (mass / total if total > 0 else even) + PRIOR_EVEN_SHARE * even
        for mass in relevance
    ]


def hinted(points: Sequence[tuple[float, float]]) -> list[float]:
    """Return the prior weight of each commit of a bisection, from its (weight, hint of a person).

    No hint takes a commit out of the search: HINT_FLOOR of the mean weight remains, or all of a
    smaller weight.
    """
    floor = HINT_FLOOR * sum(weight for weight, _ in points) / max(1, len(points) - 1)
    return [max(weight * hint, min(weight, floor)) for weight, hint in points]
