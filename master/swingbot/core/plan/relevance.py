"""How likely a commit is to be the culprit before anything was measured. Derivation: docs/statistics.md, "Costs and priors"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

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
# sha256 of each object compiled from a .c file, by path: a build's objects.json
Objects = Mapping[str, str]


def weight(
    paths: Sequence[str], compiled: frozenset[str] | None = None, arch: str = "x86"
) -> float:
    """Prior mass of a commit that changes `paths`, relative to 1 for one that touches code of this kernel.

    `compiled` names the objects of any finished build of this configuration; without it, every source counts as compiled.
    """
    return max((_of_path(path, compiled, arch) for path in paths), default=PRIOR_NO_CODE)


def _of_path(path: str, compiled: frozenset[str] | None, arch: str) -> float:
    if path.startswith(_NO_CODE) or (
        path.startswith("arch/") and not path.startswith(f"arch/{arch}/")
    ):
        return PRIOR_NO_CODE
    # What is written in assembler, generates or boots has no object in the list; headers under include/ are everybody's.
    if compiled is None or path.startswith((f"arch/{arch}/", "include/", "scripts/")):
        return 1.0
    if f"{path[:-2]}.o" in compiled:
        return 1.0
    beside = path.rpartition("/")[0] + "/"
    if not any(other.startswith(beside) for other in compiled):
        return PRIOR_NO_CODE
    return PRIOR_MAYBE_COMPILED if path.endswith(".c") else 1.0


def of_patch(state: PatchState) -> float:
    """What a patch's weight is multiplied by in a rebased branch whose last tip did not show the change."""
    return {"same": PRIOR_SAME_PATCH, "moved": PRIOR_MOVED_PATCH}.get(state, 1.0)


def untouched(paths: Sequence[str], before: Objects, after: Objects) -> bool:
    """Whether a commit between two builds left no object of its own behind: each source it touched gives the same object in both.

    Only for commits that touch nothing but compiled sources; what headers and Kconfig do shows in objects of others.
    """
    own = [f"{path[:-2]}.o" for path in paths if path.endswith(".c")]
    return len(own) == len(paths) > 0 and all(
        before.get(path) is not None and before.get(path) == after.get(path) for path in own
    )


def weights(relevance: Sequence[float]) -> list[float]:
    """Prior mass of each commit, in sum 1: by relevance, and a floor of `PRIOR_EVEN_SHARE`/n for each. Without any relevance all are alike."""
    if not relevance:
        return []
    total = sum(relevance)
    even = 1.0 / len(relevance)
    return [
        (1.0 - PRIOR_EVEN_SHARE) * (mass / total if total > 0 else even) + PRIOR_EVEN_SHARE * even
        for mass in relevance
    ]
