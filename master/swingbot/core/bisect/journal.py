"""The journal of a bisection: what each step was shown, what it decided, and whether it would decide the same again.

A step is a pure function of (state, policy), so its journal is the state in differences: most facts never change, some do while a
bisection runs (costs that were learnt, images that turned out identical, skips and hints of a person, boots in flight, the budget).
Everything here is plain JSON whose text is a function of the values alone: keys sorted, floats as Python prints them (exact).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from swingbot.core.bisect.state import Action, BisectionState, Conclude, Measure, PointState
from swingbot.core.bisect.step import step
from swingbot.core.bisect.thresholds import FIRST_EDITION, Policy

VERSION: Final = 1
T = TypeVar("T")
Facts = dict[str, Any]  # what is different from the step before; everything at the first
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
# of the state: encoded in ways of their own
_APART: Final = ("points", "observations", "in_flight")


class JournalError(ValueError):
    """The text is not a journal, or one of another make; the message says which line and what to do."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one step was shown, as plain JSON values. `points` by field: a list over the points."""

    policy: Facts
    state: Facts
    points: dict[str, list[Any]]
    observations: tuple[str, ...]  # each as text, sorted
    in_flight: tuple[str, ...]

    @property
    def digest(self) -> str:
        """sha256 of everything; equal digests are equal inputs."""
        return hashlib.sha256(
            text({name: getattr(self, name) for name in _names(Snapshot)}).encode()
        ).hexdigest()


# --- values to plain JSON and back ------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """JSON on one line, the same for equal values."""
    return _ENCODER.encode(value)


def plain(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists; the rest is JSON already."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (tuple, list)) else value


@lru_cache(maxsize=32)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def typed(kind: type[T], value: Any) -> T:
    """The inverse of `plain` for a type. Raises JournalError for a field that the type does not have."""
    return cast(T, _typed(kind, value))


def _typed(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return (
            None
            if value is None
            else _typed(next(arg for arg in inner if arg is not type(None)), value)
        )
    if origin is tuple:
        _must(isinstance(value, list), f"expected a list, not {value!r}")
        return (
            tuple(_typed(inner[0], entry) for entry in value)
            if inner[-1] is Ellipsis
            else tuple(map(_typed, inner, value))
        )
    if dataclasses.is_dataclass(kind):
        return _object(kind, value)
    if kind is float:
        _must(
            isinstance(value, (int, float)) and not isinstance(value, bool),
            f"expected a number, not {value!r}",
        )
        return float(value)
    if isinstance(kind, type) and kind in (int, str, bool):
        _must(type(value) is kind, f"expected {kind.__name__}, not {value!r}")
    if origin is Literal:
        _must(value in inner, f"{value!r} is none of {', '.join(map(str, inner))}")
    return value


def _object(kind: Any, value: Any) -> Any:
    hints = _hints(kind)
    _must(isinstance(value, dict), f"expected an object, not {value!r}")
    unknown = sorted(value.keys() - hints.keys())
    _must(
        not unknown,
        f"{kind.__name__} has no field {', '.join(unknown)}: written by another version of the engine",
    )
    try:
        return kind(**{name: _typed(hints[name], inner) for name, inner in value.items()})
    except (TypeError, ValueError) as error:
        raise JournalError(f"{kind.__name__}: {error}") from None


@lru_cache(maxsize=32)
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _must(holds: bool, words: str) -> None:
    if not holds:
        raise JournalError(words)


# --- a state in differences -------------------------------------------------------------------------------------------------


def canonical(state: BisectionState) -> BisectionState:
    """The same state with observations and boots in flight in one order: what is decided on must be what a journal can give back."""
    return dataclasses.replace(
        state,
        observations=tuple(sorted(state.observations, key=lambda o: text(plain(o)))),
        in_flight=tuple(sorted(state.in_flight, key=lambda f: text(plain(f)))),
    )


def snapshot(state: BisectionState, policy: Policy) -> Snapshot:
    fields = [field.name for field in dataclasses.fields(PointState) if field.name != "idx"]
    return Snapshot(
        policy={
            name: value for name, value in plain(policy).items() if FIRST_EDITION.get(name) != value
        },
        state={
            f.name: plain(getattr(state, f.name))
            for f in dataclasses.fields(state)
            if f.name not in _APART
        }
        | {"noise": state.noise.to_json()},
        points={name: [plain(getattr(point, name)) for point in state.points] for name in fields},
        observations=tuple(sorted(text(plain(o)) for o in state.observations)),
        in_flight=tuple(sorted(text(plain(f)) for f in state.in_flight)),
    )


def restored(shot: Snapshot) -> tuple[BisectionState, Policy]:
    """State and policy of a snapshot. Raises JournalError."""
    count = max((len(column) for column in shot.points.values()), default=0)
    points = [
        {"idx": i} | {name: column[i] for name, column in shot.points.items()} for i in range(count)
    ]
    state = (
        shot.state
        | {"points": points}
        | {
            name: [json.loads(line) for line in getattr(shot, name)]
            for name in ("observations", "in_flight")
        }
    )
    return typed(BisectionState, state), typed(Policy, {**FIRST_EDITION, **shot.policy})


def difference(before: Snapshot | None, now: Snapshot) -> Facts:
    """What `now` has that `before` has not; `apply` puts it back. Only keys that have something to say are there."""
    old = before or Snapshot({}, {}, {}, (), ())
    had, have = set(old.observations), set(now.observations)
    gone, seen = (
        [o for o in old.observations if o not in have],
        [o for o in now.observations if o not in had],
    )
    facts: Facts = {
        "policy": _changed(old.policy, now.policy),
        "state": _changed(old.state, now.state),
        "points": {
            name: runs
            for name, column in now.points.items()
            if (runs := _runs(old.points.get(name, []), column))
        },
        "gone": [json.loads(line) for line in gone],
        "seen": [json.loads(line) for line in seen],
    }
    if old.in_flight != now.in_flight or before is None:
        facts["in_flight"] = [json.loads(line) for line in now.in_flight]
    return {key: value for key, value in facts.items() if value or key == "in_flight"}


def apply(before: Snapshot | None, facts: Facts) -> Snapshot:
    """The snapshot after `facts`. Raises JournalError for what no `difference` says."""
    old = before or Snapshot({}, {}, {}, (), ())
    try:
        gone = {text(entry) for entry in facts.get("gone", ())}
        points = {name: list(column) for name, column in old.points.items()}
        for name, runs in facts.get("points", {}).items():
            points[name] = _with_runs(points.get(name, []), runs)
        return Snapshot(
            policy=old.policy | facts.get("policy", {}),
            state=old.state | facts.get("state", {}),
            points=points,
            observations=tuple(
                sorted(
                    [o for o in old.observations if o not in gone]
                    + [text(entry) for entry in facts.get("seen", ())]
                )
            ),
            in_flight=tuple(sorted(text(entry) for entry in facts["in_flight"]))
            if "in_flight" in facts
            else old.in_flight,
        )
    except (TypeError, AttributeError, ValueError, KeyError, IndexError) as error:
        raise JournalError(f"these are no facts of a step: {error}") from None


def _changed(old: Facts, now: Facts) -> Facts:
    return {
        key: value for key, value in now.items() if key not in old or text(old[key]) != text(value)
    }


def _runs(old: Sequence[Any], now: Sequence[Any]) -> list[list[Any]]:
    """[first, last, value] of each stretch of points that have a new value, the same one."""
    runs: list[list[Any]] = []
    for i, value in enumerate(now):
        if i < len(old) and old[i] == value and type(old[i]) is type(value):
            continue
        if (
            runs
            and runs[-1][1] == i - 1
            and runs[-1][2] == value
            and type(runs[-1][2]) is type(value)
        ):
            runs[-1][1] = i
        else:
            runs.append([i, i, value])
    return runs


def _with_runs(column: list[Any], runs: Iterable[Sequence[Any]]) -> list[Any]:
    for first, last, value in runs:
        if not 0 <= first <= last < 1_000_000 or first > len(column):
            raise ValueError(f"points {first}..{last}")
        column[first : last + 1] = [value] * (last + 1 - first)
    return column


# --- decisions --------------------------------------------------------------------------------------------------------------


def decision(action: Action) -> Facts:
    """An action as plain JSON. Of a conclusion's many candidates it holds the digest: enough to tell whether they are the same."""
    if isinstance(action, Measure):
        return {
            "do": "measure",
            "phase": action.phase,
            "requests": [boot.to_json() for boot in action.requests],
            "why": action.why,
        }
    if isinstance(action, Conclude):
        told = plain(action.conclusion)
        told["candidates_sha256"] = hashlib.sha256(
            text(told.pop("candidates")).encode()
        ).hexdigest()
        return {"do": "conclude", **told}
    return {"do": "wait", **plain(action)}


def worth_noting(last: Facts | None, facts: Facts, action: Facts) -> bool:
    """Whether a step belongs into the journal: not when it waits as before and only costs or times have moved."""
    if last is None or action["do"] != "wait" or text(last) != text(action):
        return True
    points = set(facts.get("points", ())) - {"build_cost_seconds"}
    state = set(facts.get("state", ())) - {"boot_cost_seconds"}
    return bool(points or state or facts.keys() - {"points", "state"})


# --- replay -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStep:
    """One entry of a journal."""

    number: int
    at: str
    engine: str  # which make of the engine decided
    facts: Facts
    digest: str
    action: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDifference:
    """Where a replay parted from the journal."""

    step: int
    recorded: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    steps: int  # decided again, the differing one included
    difference: ReplayDifference | None


def states(steps: Iterable[JournalStep]) -> Iterable[tuple[JournalStep, Snapshot]]:
    """Each step with all that it was shown. Raises JournalError where the facts do not give the state that was recorded."""
    shot: Snapshot | None = None
    for entry in steps:
        shot = apply(shot, entry.facts)
        if shot.digest != entry.digest:
            raise JournalError(
                f"step {entry.number}: its facts do not give the state that was recorded; the journal was changed or a line is missing"
            )
        yield entry, shot


def replay(
    steps: Iterable[JournalStep], decide: Callable[[BisectionState, Policy], Action] = step
) -> Replay:
    """Decide every step again. Stops at the first that differs. Raises JournalError.

    The sentences of a decision (`why`, `reason`) are not compared: they may be reworded.
    """
    done = 0
    for entry, shot in states(steps):
        done += 1
        try:
            state, policy = restored(shot)
        except JournalError as error:
            raise JournalError(f"step {entry.number}: {error}") from None
        decided = decision(decide(state, policy))
        if _without_words(entry.action) != _without_words(decided):
            difference = ReplayDifference(
                step=entry.number, recorded=text(entry.action), now=text(decided)
            )
            return Replay(steps=done, difference=difference)
    return Replay(steps=done, difference=None)


def _without_words(action: Facts) -> str:
    return text({key: value for key, value in action.items() if key not in ("reason", "why")})
