"""Predict the cost of a kernel build from earlier builds in this lab. Times are in seconds.

An incremental make rebuilds what changed since the last build in its work tree. The cost of a
commit therefore depends on the commit of the work tree. Derivation and figures:
docs/statistics.md, "Costs and priors".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Final, NamedTuple

# The shipped VM configuration on two processors; used until the lab has builds of its own
FULL_SECONDS: Final = 300.0
# Default shares of a full build for the parts of an incremental one, measured on 6.1; see
# docs/statistics.md
_BASE, _SOURCE, _LOCAL, _WIDE, _CONFIG = 0.04, 0.005, 0.03, 0.7, 0.5
# Slopes between builds whose sources differ by at most this many are mostly noise.
_APART: Final = 2
# Minimum remaining share of a build's time. If it is too small, an overrun estimate stays near 0.
_OVERRUN: Final = 0.1
# Number of latest builds to learn from. More take time and are of an older tree.
PAST_BUILDS: Final = 60


class ChangedFiles(NamedTuple):
    """Files that make has to process, by kind."""

    sources: int = 0  # files that are compiled on their own
    local: int = 0  # headers and tables next to the sources, used by a directory or two
    wide: int = 0  # headers under include/, used by much of the kernel
    config: int = 0  # Kconfig, Makefiles and scripts: may rebuild anything, usually little


@dataclass(frozen=True, slots=True)
class MeasuredBuild:
    """A completed build: its duration, and the changes since the previous build in the work tree.

    None: there was no previous build.
    """

    change: ChangedFiles | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds for each part of a build.

    `base` always applies (make scans, links, packs), the others if files of their kind changed.
    """

    base: float
    source: float  # per file
    local: float  # once per build
    wide: float  # once per build
    config: float  # once per build
    full: float

    def of(self, change: ChangedFiles | None) -> float:
        """Return the seconds of a build after `change` (None: from scratch), at most a full one."""
        if change is None:
            return self.full
        parts = (
            self.local * (change.local > 0)
            + self.wide * (change.wide > 0)
            + self.config * (change.config > 0)
        )
        return min(self.full, self.base + self.source * change.sources + parts)


def costs(builds: Sequence[MeasuredBuild], full_seconds: float = FULL_SECONDS) -> Costs:
    """Learn from `builds`, latest last.

    Each part is a median in which the default counts as one build, so that a single odd build has
    little weight. The parts are learned in the order in which they can be separated: first sources
    alone, then the additional cost of headers and Kconfig.
    """
    known = [built for built in builds if built.seconds >= 0][-PAST_BUILDS:]
    full = median([full_seconds, *(built.seconds for built in known if built.change is None)])
    plain = [
        (built.change.sources, built.seconds)
        for built in known
        if built.change and built.change == (built.change.sources, 0, 0, 0)
    ]
    source = _each(plain, _SOURCE * full)
    base = median([_BASE * full, *(max(0.0, seconds - source * n) for n, seconds in plain)])
    learned = Costs(
        base=base,
        source=source,
        local=_LOCAL * full,
        wide=_WIDE * full,
        config=_CONFIG * full,
        full=full,
    )
    for part in ("local", "wide", "config"):
        samples = [
            max(0.0, built.seconds - base - source * built.change.sources)
            for built in known
            if built.change
            and [name for name in ("local", "wide", "config") if getattr(built.change, name)]
            == [part]
        ]
        learned = replace(learned, **{part: median([getattr(learned, part), *samples])})
    return learned


def _each(plain: Iterable[tuple[int, float]], default: float) -> float:
    """Return seconds per source, never negative.

    The median of the slopes between pairs of builds (Theil 1950, Sen 1968) and the default.
    """
    slopes = [(b - a) / (m - n) for (n, a), (m, b) in combinations(plain, 2) if abs(m - n) > _APART]
    return max(0.0, median([default, *slopes]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PastBuild:
    """A completed build as stored."""

    commit: str
    layout: int
    built: bool  # False: it failed, so its duration is of little use
    cached: bool  # nothing was built, and no work tree changed
    seconds: float
    worker: str | None  # worker whose work tree is at this commit since


def learn(
    history: Sequence[PastBuild],
    between: Callable[[str, str], Iterable[str] | None],
    compiled: frozenset[str] | None = None,
) -> Costs:
    """Learn from `history`, oldest first.

    Each build is related to the previous one in the same worker's work tree. `between` returns the
    paths that differ between two commits, or None if that is no longer known.
    """
    stands: dict[str | None, str] = {}
    builds = []
    for past in history:
        if past.cached:
            continue
        before = stands.get(past.worker)
        stands[past.worker] = past.commit
        paths = between(before, past.commit) if before is not None else None
        if past.built and past.layout == 0 and (before is None or paths is not None):
            builds.append(
                MeasuredBuild(None if paths is None else change_of(paths, compiled), past.seconds)
            )
    return costs(builds)


def standing(history: Iterable[PastBuild]) -> list[str]:
    """Return the current commits of all workers' work trees."""
    return list(
        dict.fromkeys({past.worker: past.commit for past in history if not past.cached}.values())
    )


def seconds_left(foreseen: float, elapsed: float) -> float:
    """Return the remaining seconds of a build after `elapsed` of the predicted seconds.

    At least `_OVERRUN` of the elapsed time: once a build overruns its prediction, the best guess
    of the remaining time grows with the elapsed time.
    """
    return max(foreseen - elapsed, _OVERRUN * elapsed)


def change_of(paths: Iterable[str], compiled: frozenset[str] | None = None) -> ChangedFiles:
    """Count `paths` by kind.

    With `compiled` (paths of objects), a source without an object in this configuration is free.
    """
    sources = local = wide = config = 0
    for path in set(paths):
        name = path.rpartition("/")[2]
        if path.startswith(("Documentation/", "LICENSES/", "samples/", "tools/testing/")):
            continue
        if name.startswith(("Kconfig", "Makefile", "Kbuild")) or path.startswith("scripts/"):
            config += 1
        elif path.endswith((".c", ".S")):
            sources += compiled is None or path.endswith(".S") or f"{path[:-2]}.o" in compiled
        elif path.endswith(".h"):
            wide, local = (wide + 1, local) if "include/" in path else (wide, local + 1)
    return ChangedFiles(sources, local, wide, config)


def along(
    steps: Iterable[Iterable[str]], compiled: frozenset[str] | None = None
) -> Iterator[ChangedFiles]:
    """Return the accumulated changes after each of `steps`.

    A path that a later step reverts still counts, so this is an upper bound.
    """
    seen: set[str] = set()
    total = ChangedFiles()
    for paths in steps:
        new = set(paths) - seen
        seen |= new
        total = ChangedFiles(*(a + b for a, b in zip(total, change_of(new, compiled), strict=True)))
        yield total


def costs_of_points(
    learnt: Costs,
    steps: Sequence[Iterable[str]],
    stands: int | None,
    start: Iterable[str] | None,
    compiled: frozenset[str] | None = None,
) -> list[float]:
    """Return the seconds to build each of the points 0..n.

    Commit i changes `steps[i - 1]`, and the work tree is at point `stands`. If it is at none of
    them, `start` are the differences between it and point 0 (None: there is no work tree). Rounded
    to two significant digits: decisions need no more, and values that rarely change are rarely
    stored.
    """
    if stands is None and start is None:
        changes: list[ChangedFiles | None] = [None] * (len(steps) + 1)
    elif stands is None:
        changes = list(along([start or (), *steps], compiled))
    else:
        behind = list(along(reversed(steps[:stands]), compiled))[::-1]
        changes = [*behind, ChangedFiles(), *along(steps[stands:], compiled)]
    return [_rounded(learnt.of(change)) for change in changes]


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.2g}")
