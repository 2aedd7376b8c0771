"""What a kernel build will cost, learnt from what this lab's builds did. Times in seconds.

An incremental make redoes what changed since the last build in its work tree, so the cost of a commit depends on
where the work tree stands. Derivation and figures: docs/statistics.md, "Costs and priors".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final, NamedTuple

# Of the shipped VM configuration on two processors, until this lab's own builds say better.
FULL_SECONDS: Final = 300.0
# Shares of a full build that the parts of an incremental one take until there is better; measured on 6.1, see docs/statistics.md.
_BASE, _SOURCE, _LOCAL, _WIDE, _CONFIG = 0.04, 0.005, 0.03, 0.7, 0.5
# Slopes between builds that differ by this many sources or fewer are mostly noise of the base cost.
_APART: Final = 2
# A build is taken to have at least this share of its time so far ahead: smaller, and an estimate that was too low stands still at nothing.
_OVERRUN: Final = 0.1
# Latest builds that are learnt from: more cost time and are of an older tree.
PAST_BUILDS: Final = 60


class ChangedFiles(NamedTuple):
    """What make has to redo, counted by kind."""

    sources: int = 0  # files that are compiled on their own
    local: int = 0  # headers and tables beside the sources: a directory or two depend on them
    wide: int = 0  # headers under include/: much of the kernel does
    config: int = 0  # Kconfig, Makefiles and scripts: may redo anything, mostly redo little


@dataclass(frozen=True, slots=True)
class MeasuredBuild:
    """A build that was really made: what had changed since the one before in the same work tree (None: there was none), and how long it took."""

    change: ChangedFiles | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds of each part of a build: `base` always (make looks around, links, packs), the others where something of that kind changed."""

    base: float
    source: float  # each
    local: float  # once
    wide: float  # once
    config: float  # once
    full: float

    def of(self, change: ChangedFiles | None) -> float:
        """Seconds that a build after `change` will take; None: from nothing. Never more than a full one."""
        if change is None:
            return self.full
        parts = (
            self.local * (change.local > 0)
            + self.wide * (change.wide > 0)
            + self.config * (change.config > 0)
        )
        return min(self.full, self.base + self.source * change.sources + parts)


def costs(builds: Sequence[MeasuredBuild], full_seconds: float = FULL_SECONDS) -> Costs:
    """Learn from `builds`, latest last. Each part is a median in which the default counts as one build, so nothing hangs on one odd build.

    The parts are learnt in the order in which they can be seen apart: sources alone first, then what headers and Kconfig add to them.
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
    made = Costs(
        base=base,
        source=source,
        local=_LOCAL * full,
        wide=_WIDE * full,
        config=_CONFIG * full,
        full=full,
    )
    for part in ("local", "wide", "config"):
        found = [
            max(0.0, built.seconds - base - source * built.change.sources)
            for built in known
            if built.change
            and [name for name in ("local", "wide", "config") if getattr(built.change, name)]
            == [part]
        ]
        made = _with(made, part, median([getattr(made, part), *found]))
    return made


def _with(made: Costs, part: str, seconds: float) -> Costs:
    fields = {
        name: getattr(made, name) for name in ("base", "source", "local", "wide", "config", "full")
    }
    return Costs(**{**fields, part: seconds})


def _each(plain: Iterable[tuple[int, float]], default: float) -> float:
    """Seconds a source: the median of the slopes between pairs of builds (Theil 1950, Sen 1968), the default one of them; never negative."""
    slopes = [(b - a) / (m - n) for (n, a), (m, b) in combinations(plain, 2) if abs(m - n) > _APART]
    return max(0.0, median([default, *slopes]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PastBuild:
    """A finished build as it is remembered."""

    commit: str
    layout: int
    built: bool  # False: it failed, so its seconds say little
    cached: bool  # nothing was made, and no work tree moved
    seconds: float
    worker: str | None  # whose work tree stands at this commit since


def learn(
    history: Sequence[PastBuild],
    between: Callable[[str, str], Iterable[str] | None],
    compiled: frozenset[str] | None = None,
) -> Costs:
    """Learn from `history`, oldest first: each build is set against the one before it in the same worker's work tree.

    `between` gives the paths that differ between two commits, None where that is not known any more.
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
    """The commits at which the work trees of all workers stand."""
    return list(
        dict.fromkeys({past.worker: past.commit for past in history if not past.cached}.values())
    )


def seconds_left(foreseen: float, elapsed: float) -> float:
    """What a build has left that has been running for `elapsed` seconds of those foreseen.

    Never less than `_OVERRUN` of what it has taken: of a build that overruns its forecast, all that is
    known is that it takes longer than thought, so what is left grows with it.
    """
    return max(foreseen - elapsed, _OVERRUN * elapsed)


def change_of(paths: Iterable[str], compiled: frozenset[str] | None = None) -> ChangedFiles:
    """Count `paths` by kind. With `compiled` (paths of objects), a source whose object is not in this configuration costs nothing."""
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
    """What has changed after each of `steps` since before the first.

    A path that a later step changes back counts all the same: an upper bound.
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
    """Seconds to build each of the points 0..n, when commit i changes `steps[i - 1]` and the work tree stands at point `stands`.

    If it stands at none of them, `start` is what differs between it and point 0 (None: there is no work tree). Two significant
    digits: a cost decides nothing finer, and what changes seldom is stored seldom.
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
