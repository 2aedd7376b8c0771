"""Which jobs run a piece of the kernel, by the calls that earlier boots counted (`executed.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.proof.executed import Seen, seen_as

LISTED: Final = 3900  # functions that a run lists if it was not asked for some, as `run` says

_HEAD: Final = re.compile(r"\+\+\+ b/(?P<path>[^\t]{1,4096})\t?")
_HUNK: Final = re.compile(r"@@ -\d{1,9}(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@(?: (?P<text>.*))?")
_NAME: Final = re.compile(r"\b(?P<name>[A-Za-z_]\w{0,180}) ?\(")
_WORDS: Final = 500  # characters of a line in which a function's name is looked for
# SYSCALL_DEFINE3(open, ...) defines __do_sys_open and others, DEFINE_...(x) no function.
_SYSCALL: Final = re.compile(r"(?:COMPAT_)?SYSCALL_DEFINE\d\((?P<name>\w{1,100})")


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


def changed_functions(diff: str) -> dict[str, set[str]]:
    """Return the functions that a diff changes by path of its new side.

    The diff shows each changed function as a whole (`git diff --function-context`): a line in the
    first column begins one or ends it. Names are those of the source, some of which are macros or
    inlined everywhere.
    """
    found: dict[str, set[str]] = {}
    path, name = "", ""
    for line in diff.splitlines():
        if head := _HEAD.fullmatch(line):
            path, name = head["path"], ""
            found.setdefault(path, set())
        elif line.startswith(("--- ", "diff --git ")) or not path:
            name = ""
        elif hunk := _HUNK.fullmatch(line):
            name = _begun(hunk["text"] or "") or ""
        else:
            text = line[1:]
            begun = _begun(text)
            if begun is not None:
                name = begun
            if name and line[:1] in ("+", "-"):
                found[path].add(name)
            if text.startswith("}"):
                name = ""
    return found


def _begun(text: str) -> str | None:
    """Return the function that a line of a source begins, "" for another beginning in its first
    column; None if it goes on with what was there.
    """
    if not re.match(r"[A-Za-z_]", text) or (text.rstrip().endswith((":", ",")) and "(" not in text):
        return None
    if text.rstrip().endswith(";"):
        return ""
    if call := _SYSCALL.match(text):
        return f"__do_sys_{call['name']}"
    match = _NAME.search(text[:_WORDS])
    return match["name"] if match else None


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
