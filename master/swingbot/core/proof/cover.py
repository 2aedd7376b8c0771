"""Which jobs run a piece of the kernel, by the calls that earlier boots counted (`executed.py`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.patchset.hunks import calls_in, hunks_of
from swingbot.core.proof.executed import Seen, seen_as

# Beginnings of the functions that macros generate for each tracepoint, in the object that has it.
_GENERATED: Final = re.compile(
    "__traceiter_|__SCT__|perf_trace_|trace_event_raw_event_|trace_raw_output_"
)
LISTED: Final = 3900  # functions that a run lists if it was not asked for some, as `run` says


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFunction:
    """A function in an object of the kernel with hooks.

    `alike`: another object has one of its name. `hooked`: its calls can be counted.
    """

    name: str
    object: str
    alike: bool
    hooked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """A unit job whose calls were counted in a boot.

    `asked` are the functions that it was asked to count; none: those called most. `counted` is how
    many symbols it counted, `calls` those by function.
    """

    boot: int
    unit_job: str
    testbox: str
    asked: frozenset[str]
    counted: int
    calls: Mapping[str, float]

    def seen(self, function: CodeFunction) -> Seen:
        listed = function.name in self.calls
        if self.asked:
            asked, counted = function.name in self.asked, listed
        else:  # what was called, and all of it if the list was not cut
            asked, counted = listed or self.counted < LISTED, listed or function.hooked
        return seen_as(asked=asked, alike=function.alike, counted=counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUpFunction:
    """`calls` by unit job and testbox; `seen` is the best answer that a run gave."""

    function: CodeFunction
    seen: Seen
    calls: Mapping[tuple[str, str], float]


_BEST: Final[Sequence[Seen]] = ("counted", "no hook", "namesakes", "not asked")


def covered(
    functions: Iterable[CodeFunction], runs: Sequence[CountedRun]
) -> tuple[LookedUpFunction, ...]:
    """Look each function up in the runs; of several runs of a unit job on a testbox the first that
    counted it is right.
    """
    found = []
    for function in functions:
        calls: dict[tuple[str, str], float] = {}
        states = set[Seen]()
        for run in runs:
            seen = run.seen(function)
            states.add(seen)
            if seen == "counted":
                calls.setdefault((run.unit_job, run.testbox), run.calls.get(function.name, 0.0))
        seen = next((state for state in _BEST if state in states), "not asked")
        found.append(LookedUpFunction(function=function, seen=seen, calls=calls))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSource:
    """`functions` changed, by their names in the source: some are macros, or inlined everywhere.
    `calls` of each function of the source.
    """

    functions: set[str]
    calls: dict[str, set[str]]

    def in_code(self, name: str, code: Collection[str]) -> set[str]:
        """Return the functions with `code` that contain `name`, which has none of its own: its
        entries if it is a system call, or what calls it, directly or through others without code.
        """
        entry = f"_{name.removeprefix('__do_')}"
        if name.startswith("__do_sys_") and (found := {x for x in code if x.endswith(entry)}):
            return found
        found, known, left = set(), {name}, [name]
        while left:
            called = left.pop()
            callers = {one for one, calls in self.calls.items() if called in calls} - known
            known |= callers
            found |= callers.intersection(code)
            left += sorted(callers.difference(code))
        return found


def changed_sources(diff: str) -> dict[str, ChangedSource]:
    """Return what a diff with whole files changes, by path."""
    found: dict[str, ChangedSource] = {}
    for hunk in hunks_of(diff):
        source = found.setdefault(hunk.path, ChangedSource(functions=set(), calls={}))
        source.functions.update(hunk.functions)
        for name, calls in calls_in(hunk).items():
            source.calls.setdefault(name, set()).update(calls)
    return found


def written(function: CodeFunction) -> bool:
    """Whether the source has the function, and no macro of a tracepoint generates it."""
    return not _GENERATED.match(function.name)


def source_path(object_: str) -> str:
    """Return the path of the C source that an object is compiled from."""
    return f"{object_.removesuffix('.o')}.c"


def object_of(path: str) -> str | None:
    """Return the object of a source; None if such files have none."""
    stem, dot, end = path.rpartition(".")
    return f"{stem}.o" if dot and end in ("c", "S") else None


def by_job(found: Iterable[LookedUpFunction]) -> Iterator[tuple[tuple[str, str], int, float]]:
    """Yield each unit job and testbox with its number of called functions and of their calls, most
    functions first.
    """
    jobs: dict[tuple[str, str], list[float]] = {}
    for one in found:
        for job, calls in one.calls.items():
            jobs.setdefault(job, []).append(calls)
    rows = [(job, sum(map(bool, calls)), sum(calls)) for job, calls in jobs.items()]
    yield from sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))
