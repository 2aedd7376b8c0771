"""How likely a commit is to be the culprit before anything was measured. Derivation: docs/statistics.md, "Costs and priors"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

# A commit that touches no code of the kernel under test: build scripts and Kconfig have been guilty before.
UNLIKELY: Final = 0.05
# A source without an object of its own beside others that have one: mostly left out by the configuration, at times included by another file.
MAYBE: Final = 0.25
# Share of the prior that is spread evenly whatever we think we know: a wrong prior must cost little (bisect.md 3.2).
FLOOR: Final = 0.1
_NO_CODE: Final = (
    "Documentation/",
    "LICENSES/",
    "samples/",
    "tools/",
    ".mailmap",
    "MAINTAINERS",
    "CREDITS",
)
Objects = Mapping[
    str, str
]  # sha256 of each object compiled from a .c file, by path: a build's objects.json


def weight(
    paths: Sequence[str], compiled: frozenset[str] | None = None, arch: str = "x86"
) -> float:
    """Prior mass of a commit that changes `paths`, relative to 1 for one that touches code of this kernel.

    `compiled` names the objects of any finished build of this configuration; without it, every source counts as compiled.
    """
    return max((_of_path(path, compiled, arch) for path in paths), default=UNLIKELY)


def _of_path(path: str, compiled: frozenset[str] | None, arch: str) -> float:
    if path.startswith(_NO_CODE) or (
        path.startswith("arch/") and not path.startswith(f"arch/{arch}/")
    ):
        return UNLIKELY
    # What is written in assembler, generates or boots has no object in the list; headers under include/ are everybody's.
    if compiled is None or path.startswith((f"arch/{arch}/", "include/", "scripts/")):
        return 1.0
    if f"{path[:-2]}.o" in compiled:
        return 1.0
    beside = path.rpartition("/")[0] + "/"
    if not any(other.startswith(beside) for other in compiled):
        return UNLIKELY
    return MAYBE if path.endswith(".c") else 1.0


def untouched(paths: Sequence[str], before: Objects, after: Objects) -> bool:
    """Whether a commit between two builds left no object of its own behind: each source it touched gives the same object in both.

    Only for commits that touch nothing but compiled sources; what headers and Kconfig do shows in objects of others.
    """
    own = [f"{path[:-2]}.o" for path in paths if path.endswith(".c")]
    return len(own) == len(paths) > 0 and all(
        before.get(path) is not None and before.get(path) == after.get(path) for path in own
    )


def weights(relevance: Sequence[float]) -> list[float]:
    """Prior mass of each commit, in sum 1: by relevance, and a floor of `FLOOR`/n for each. Without any relevance all are alike."""
    if not relevance:
        return []
    total = sum(relevance)
    even = 1.0 / len(relevance)
    return [
        (1.0 - FLOOR) * (mass / total if total > 0 else even) + FLOOR * even for mass in relevance
    ]
