"""Were the functions that a commit changed called while the benchmark ran?

Parent and commit are each built with function hooks (fragment `trace`) and run the unit job once
more while ftrace counts calls. The changed functions are looked up in these two kernels, not in the
measured ones, because a compiler may inline a function in one configuration and not in another.
If a changed function is inlined, its callers differ, and their calls are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal

from swingbot.core import limits
from swingbot.core.proof.gates import GateResult
from swingbot.core.text.numbers import thousands
from swingbot_jobs.contract.unit_job import FUNCTION
from swingbot_jobs.kernel_diff import ChangedSymbol, CodeChange, KernelRecord, source_name

MONITOR: Final = "function-profile"
_NAMED: Final = 3  # functions named in the reason
_CALLERS: Final = 2
_HOOK: Final = "__fentry__"  # what a function with a hook calls first, on x86
_KEPT: Final = 200  # functions listed in the detail

Seen = Literal["counted", "no hook", "namesakes", "not asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCalls:
    """One of the two kernels.

    `calls` is the number of calls in one run, for each requested function that has a hook.
    """

    record: KernelRecord
    calls: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledFunction:
    """A changed function with its calls in the kernels of the commit and of the parent.

    The calls are None where they are unknown. `callers` (name, calls) are the functions that refer
    to a function without a hook.
    """

    name: str
    object: str
    seen: Seen
    calls: float | None = None
    base_calls: float | None = None
    callers: tuple[tuple[str, float | None], ...] = ()

    @property
    def called(self) -> float:
        """Number of calls, in the parent if there are none in the commit.

        The commit may have removed the function or its calls.
        """
        return (self.calls or self.base_calls or 0.0) if self.seen == "counted" else 0.0

    @property
    def words(self) -> str:
        return f"{self.name} called {times(self.called)}" + ("" if self.calls else " in the parent")


def seen_as(*, asked: bool, alike: bool, counted: bool) -> Seen:
    """Return how a function was seen; `alike`: others have its name, perhaps without a hook."""
    if not asked:
        return "not asked"
    if alike:
        return "namesakes"
    return "counted" if counted else "no hook"


def watched(change: CodeChange, records: Sequence[KernelRecord]) -> tuple[str, ...]:
    """Return the functions to count: the changed ones, then others of their objects up to the
    limits.

    A changed function may be inlined into one of the others in the kernel with hooks.
    Raises BadRecord.
    """
    paths = sorted({one.object for one in change.functions})
    neighbours = (
        source_name(part.name)
        for record in records
        for path in paths
        if path in record.paths()
        for part in record.object(path).code
    )
    names: dict[str, None] = {}
    characters = 0
    for name in chain((one.name for one in change.functions), neighbours):
        if name in names or not FUNCTION.fullmatch(name):
            continue
        characters += len(name) + 1
        if len(names) >= limits.COUNTED_FUNCTIONS or characters > limits.COUNTED_CHARACTERS:
            break
        names[name] = None
    return tuple(names)


def gate_result(
    change: CodeChange, base: KernelCalls, head: KernelCalls, asked: Iterable[str], where: str
) -> GateResult:
    """Return the result of the gate.

    `change` is the difference between the two kernels with hooks; `where` describes the traced run.
    The gate passes if one changed function was called. It fails only if all of them were traced and
    none was called. Raises BadRecord.
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
            reason=(
                f"{_calls(called)} in {where}{_never(len(functions) - len(called) - len(unseen))}"
            ),
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
    """Return the result if no function differs that could be called."""
    if change.functions:
        return GateResult(
            status="not run",
            reason=(
                f"{_listed([one.name for one in change.functions])}: ftrace knows none of these"
                " functions by name"
            ),
        )
    what = (
        f"it changes only data ({_listed([one.name for one in change.data])})"
        if change.data
        else "no function differs between the two kernels"
    )
    return GateResult(status="not run", reason=f"{what}: there is no call to count")


def _seen(
    changed: Sequence[ChangedSymbol], base: KernelCalls, head: KernelCalls, asked: frozenset[str]
) -> Iterator[CalledFunction]:
    alike = [namesakes(side.record) for side in (base, head)]
    for one in changed:
        before, now = base.calls.get(one.name), head.calls.get(one.name)
        seen = seen_as(
            asked=one.name in asked,
            alike=max(names[one.name] for names in alike) > 1,
            counted=bool(before or now) or (before if one.kind == "gone" else now) is not None,
        )
        yield CalledFunction(
            name=one.name,
            object=one.object,
            seen=seen,
            calls=now if seen == "counted" else None,
            base_calls=before if seen == "counted" else None,
            callers=_callers(one, base, head) if seen == "no hook" else (),
        )


def namesakes(record: KernelRecord) -> Counter[str]:
    """Count the objects that define a function of each name; ftrace reports only names."""
    return Counter(
        name
        for path in record.paths()
        for name in {source_name(part.name) for part in record.object(path).code}
    )


def hooked(record: KernelRecord, path: str) -> dict[str, bool]:
    """Return the functions of an object, and whether gcc left a hook in one of their parts."""
    found: dict[str, bool] = {}
    for part in record.object(path).code:
        if FUNCTION.fullmatch(name := source_name(part.name)):
            found[name] = found.get(name, False) or _HOOK in part.uses
    return found


def _callers(
    one: ChangedSymbol, base: KernelCalls, head: KernelCalls
) -> tuple[tuple[str, float | None], ...]:
    """Return callers of `one` in the same object, with their calls, most called first."""
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
    """List the calls: `free_unref_page called 12 345 times`."""
    return _listed([one.words for one in called])


def _never(count: int) -> str:
    return f"; {count} other{'s' * (count > 1)} never" if count > 0 else ""


def times(calls: float) -> str:
    """Format a number of calls: `once`, `12 345 times`."""
    return "once" if calls == 1 else f"{thousands(calls)} times"


def _unseen(unseen: Sequence[CalledFunction]) -> str:
    """Say which functions could not be traced and why, the strongest reason first."""
    hidden = [one for one in unseen if one.seen == "no hook"]
    alike = [one.name for one in unseen if one.seen == "namesakes"]
    rest = sum(one.seen == "not asked" for one in unseen)
    words = []
    if hidden:
        words.append(
            f"{_listed([one.name for one in hidden])} cannot be traced (inlined, run at boot"
            f" only, or never hooked){_of_callers(hidden[0])}"
        )
    if alike:
        words.append(f"{_listed(alike)}: other functions have the same name")
    if rest:
        words.append(f"{rest} more were not traced")
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
