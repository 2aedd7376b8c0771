"""Were the functions that a commit changed called while the benchmark ran?

Two kernels with hooks in their functions (fragment `trace`), one of the parent and one of the commit, each run the unit job once more while
ftrace counts calls. What the commit changed is looked up in these two kernels and not in those that were measured: a compiler may put a
function into its callers in one configuration and leave it a function of its own in another. Where that happens the callers are what
differs, and they are what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal

from swingbot.core.proof.gates import GateResult
from swingbot_jobs.contract.unit_job import FUNCTION
from swingbot_jobs.kernel_diff import ChangedSymbol, CodeChange, KernelRecord, source_name

MONITOR: Final = "function-profile"
# What one run is asked to tell: each becomes a metric, and together they are one word of the run's environment.
MOST_FUNCTIONS: Final = 1500
MOST_CHARACTERS: Final = 60_000
_NAMED: Final = 3  # functions in the reason
_CALLERS: Final = 2
_KEPT: Final = 200  # in the detail

Seen = Literal["counted", "no hook", "namesakes", "not asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCalls:
    """One of the two kernels. `calls`: of those that were asked for, each function that has a hook; how often it was called in one run."""

    record: KernelRecord
    calls: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledFunction:
    """A changed function and what was seen of it: its calls in the commit's kernel and in the parent's, None where these cannot be told."""

    name: str
    object: str
    seen: Seen
    calls: float | None = None
    base_calls: float | None = None
    callers: tuple[
        tuple[str, float | None], ...
    ] = ()  # of one that has no hook: who refers to it, with calls

    @property
    def called(self) -> float:
        """The parent's calls count too: the function may be gone, or the commit may be what ended them."""
        return (self.calls or self.base_calls or 0.0) if self.seen == "counted" else 0.0

    @property
    def words(self) -> str:
        return f"{self.name} called {times(self.called)}" + ("" if self.calls else " in the parent")


def watched(change: CodeChange, records: Sequence[KernelRecord]) -> tuple[str, ...]:
    """Functions whose calls are to be counted: the changed ones, then as many of the objects that they are in as there is room for.

    The neighbours are there because one of them may hold a changed function in the kernel with hooks. Raises BadRecord.
    """
    paths = sorted({one.object for one in change.functions})
    neighbours = (
        source_name(part.name)
        for record in records
        for path in paths
        if path in record.paths()
        for part in record.object(path).code
    )
    found: dict[str, None] = {}
    characters = 0
    for name in chain((one.name for one in change.functions), neighbours):
        if name in found or not FUNCTION.fullmatch(name):
            continue
        characters += len(name) + 1
        if len(found) >= MOST_FUNCTIONS or characters > MOST_CHARACTERS:
            break
        found[name] = None
    return tuple(found)


def told(
    change: CodeChange, base: KernelCalls, head: KernelCalls, asked: Iterable[str], where: str
) -> GateResult:
    """What the gate comes to. `change` is between the two kernels with hooks; `where`: the run that was watched, in words. Raises BadRecord.

    One changed function that was called is enough to pass. To fail, every one of them has to have been seen and never called.
    """
    if not change.functions:
        return no_call(change)
    known = frozenset(asked)
    functions = sorted(
        _seen(change.functions, base, head, known),
        key=lambda one: (-one.called, one.name, one.object),
    )
    called = [one for one in functions if one.called]
    unseen = [one for one in functions if one.seen != "counted"]
    detail = {
        "functions": [_row(one) for one in functions[:_KEPT]],
        "functions_total": len(functions),
        "called_total": len(called),
        "unseen_total": len(unseen),
    }
    if called:
        return GateResult(
            status="pass",
            reason=f"{_calls(called)} in {where}{_never(len(functions) - len(called) - len(unseen))}",
            detail=detail,
        )
    if unseen:
        rest = [one.name for one in functions if one.seen == "counted"]
        why = f"{_unseen(unseen)}" + (f"; {_listed(rest)}: never called" if rest else "")
        return GateResult(status="not run", reason=why, detail=detail)
    names = [one.name for one in functions]
    return GateResult(
        status="fail",
        reason=f"{_listed(names)} {'was' if len(names) == 1 else 'were'} never called in {where}",
        detail=detail,
    )


def no_call(change: CodeChange) -> GateResult:
    """The answer where no function differs that could be called."""
    if change.functions:
        return GateResult(
            status="not run",
            reason=f"{_listed([one.name for one in change.functions])}: no function that ftrace knows by name",
        )
    what = (
        f"it changes data alone ({_listed([one.name for one in change.data])})"
        if change.data
        else "no function differs between the two kernels"
    )
    return GateResult(status="not run", reason=f"{what}: there is no call to count")


def _seen(
    changed: Sequence[ChangedSymbol], base: KernelCalls, head: KernelCalls, asked: frozenset[str]
) -> Iterator[CalledFunction]:
    namesakes = [_namesakes(side.record) for side in (base, head)]
    for one in changed:
        before, now = base.calls.get(one.name), head.calls.get(one.name)
        if one.name not in asked:
            yield CalledFunction(name=one.name, object=one.object, seen="not asked")
        # one of them may have a hook and another none
        elif max(names[one.name] for names in namesakes) > 1:
            yield CalledFunction(name=one.name, object=one.object, seen="namesakes")
        elif not (before or now) and (before if one.kind == "gone" else now) is None:
            yield CalledFunction(
                name=one.name, object=one.object, seen="no hook", callers=_callers(one, base, head)
            )
        else:
            yield CalledFunction(
                name=one.name, object=one.object, seen="counted", calls=now, base_calls=before
            )


def _namesakes(record: KernelRecord) -> Counter[str]:
    """In how many objects there is a function of a name: ftrace tells names alone."""
    return Counter(
        name
        for path in record.paths()
        for name in {source_name(part.name) for part in record.object(path).code}
    )


def _callers(
    one: ChangedSymbol, base: KernelCalls, head: KernelCalls
) -> tuple[tuple[str, float | None], ...]:
    """Functions of the same object that refer to `one`, with their calls, those most called first."""
    side = base if one.kind == "gone" else head
    if one.object not in side.record.paths():
        return ()
    parts = side.record.object(one.object).code
    names = {
        source_name(part.name)
        for part in parts
        if any(source_name(use.partition("+")[0]) == one.name for use in part.uses)
    } - {one.name}
    return tuple(
        sorted(
            ((name, side.calls.get(name)) for name in names),
            key=lambda pair: (-(pair[1] or 0.0), pair[0]),
        )
    )[:10]


def _calls(called: Sequence[CalledFunction]) -> str:
    """`free_unref_page called 12 345 times`."""
    return _listed([one.words for one in called])


def _never(count: int) -> str:
    return f"; {count} other{'s' * (count > 1)} never" if count > 0 else ""


def times(calls: float) -> str:
    """`once`, `12 345 times`: thousands apart, as people read them."""
    return "once" if calls == 1 else f"{calls:,.0f} times".replace(",", " ")


def _unseen(unseen: Sequence[CalledFunction]) -> str:
    """The strongest reason first: which could not be seen and why."""
    hidden = [one for one in unseen if one.seen == "no hook"]
    alike = [one.name for one in unseen if one.seen == "namesakes"]
    rest = sum(one.seen == "not asked" for one in unseen)
    words = []
    if hidden:
        words.append(
            f"{_listed([one.name for one in hidden])} cannot be traced (inlined, run at boot only, or never hooked){_of_callers(hidden[0])}"
        )
    if alike:
        words.append(f"{_listed(alike)}: other functions have the same name")
    if rest:
        words.append(f"{rest} more were not asked for")
    return "; ".join(words)


def _of_callers(one: CalledFunction) -> str:
    counted = [
        f"{name} {times(calls)}" if calls else f"{name} never"
        for name, calls in one.callers
        if calls is not None
    ]
    return f", its callers: {', '.join(counted[:_CALLERS])}" if counted else ""


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _row(one: CalledFunction) -> dict[str, Any]:
    return {
        "name": one.name,
        "object": one.object,
        "seen": one.seen,
        "called": one.called if one.seen == "counted" else None,
        "calls": one.calls,
        "base_calls": one.base_calls,
        "callers": [{"name": name, "calls": calls} for name, calls in one.callers],
    }
