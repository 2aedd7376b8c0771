"""The journal of a bisection: input and decision of each step, and their replay.

A step is a pure function of (state, policy), so the journal stores the differences between states.
Most facts never change. Some do while a bisection runs: measured costs, identical images, skips and
hints of a person, boots in flight, the budget. All values are plain JSON with a canonical text:
sorted keys, and floats as Python prints them (exact).

Each step names the engine that decided it. Steps of another engine than `ENGINE` are shown and not
decided again; the first step after a change of the engine has all facts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from swingbot.core.bisect.state import Action, BisectionState, Conclude, Measure, PointState
from swingbot.core.bisect.thresholds import Policy
from swingbot_jobs import codec
from swingbot_jobs.codec import Named, plain

VERSION: Final = 1
# Another name after every change of what the engine decides from the same facts; the journals in
# tests/golden/journal show such a change.
ENGINE: Final = "4"
T = TypeVar("T")
Facts = dict[str, Any]  # differences from the previous step; the first step has everything
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
# fields of the state with their own encoding
_APART: Final = ("points", "observations", "in_flight")


class JournalError(ValueError):
    """The text is not a valid journal of this version; the message gives the line and a remedy."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Input of one step as plain JSON values.

    `points` maps each field to a list over the points.
    """

    policy: Facts
    state: Facts
    points: dict[str, list[Any]]
    observations: tuple[str, ...]  # each as text, sorted
    in_flight: tuple[str, ...]

    @property
    def digest(self) -> str:
        """sha256 of all fields; equal digests mean equal inputs."""
        return hashlib.sha256(
            text({name: getattr(self, name) for name in _names(Snapshot)}).encode()
        ).hexdigest()


def _names(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def text(value: Any) -> str:
    """Return canonical JSON on one line."""
    return _ENCODER.encode(value)


def typed(kind: type[T], value: Any) -> T:
    """Return plain JSON as `kind`. Raises JournalError."""
    try:
        return codec.typed(kind, value, kind.__name__)
    except codec.BadDocument as error:
        raise JournalError(str(error)) from None


# --- a state in differences -----------------------------------------------------------------------


def canonical(state: BisectionState) -> BisectionState:
    """Return the state with sorted observations and boots in flight, as a journal restores it."""
    return dataclasses.replace(
        state,
        observations=tuple(sorted(state.observations, key=lambda o: text(plain(o)))),
        in_flight=tuple(sorted(state.in_flight, key=lambda f: text(plain(f)))),
    )


def snapshot(state: BisectionState, policy: Policy) -> Snapshot:
    fields = [name for name in _names(PointState) if name != "idx"]
    return Snapshot(
        policy=plain(policy),
        state={
            name: plain(getattr(state, name))
            for name in _names(BisectionState)
            if name not in _APART
        },
        points={
            name: column
            for name in fields
            if any(column := [plain(getattr(point, name)) for point in state.points])
            or name != "controls"
        },
        observations=tuple(sorted(text(plain(o)) for o in state.observations)),
        in_flight=tuple(sorted(text(plain(f)) for f in state.in_flight)),
    )


def restored(shot: Snapshot) -> tuple[BisectionState, Policy]:
    """Return state and policy of a snapshot. Raises JournalError."""
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
    return typed(BisectionState, state), typed(Policy, shot.policy)


def difference(before: Snapshot | None, now: Snapshot) -> Facts:
    """Return the non-empty differences of `now` from `before`; the inverse of `apply`."""
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
    """Apply `facts` to a snapshot. Raises JournalError if they are not valid."""
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
        raise JournalError(f"the facts of the step are not valid: {error}") from None


def _changed(old: Facts, now: Facts) -> Facts:
    return {
        key: value for key, value in now.items() if key not in old or text(old[key]) != text(value)
    }


def _runs(old: Sequence[Any], now: Sequence[Any]) -> list[list[Any]]:
    """Return [first, last, value] of each run of points with the same new value."""
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


# --- decisions ------------------------------------------------------------------------------------


def decision(action: Action) -> Facts:
    """Return an action as plain JSON, with a digest in place of the candidates of a conclusion."""
    if isinstance(action, Measure):
        return {
            "do": "measure",
            "phase": action.phase,
            "requests": [boot.to_json() for boot in action.requests],
            "why": action.why,
        }
    if isinstance(action, Conclude):
        conclusion = plain(action.conclusion)
        conclusion["candidates_sha256"] = hashlib.sha256(
            text(conclusion.pop("candidates")).encode()
        ).hexdigest()
        return {"do": "conclude", **conclusion}
    return {"do": "wait", **plain(action)}


def worth_noting(last: Facts | None, facts: Facts, action: Facts) -> bool:
    """Return whether to record a step: not if it still waits and only costs have changed."""
    if last is None or action["do"] != "wait" or text(last) != text(action):
        return True
    points = set(facts.get("points", ())) - {"build_cost_seconds"}
    state = set(facts.get("state", ())) - {"boot_cost_seconds"}
    return bool(points or state or facts.keys() - {"points", "state"})


# --- replay ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStep:
    """One entry of a journal."""

    number: Annotated[int, Named("step")]
    at: str
    engine: str  # name of the engine that decided
    facts: Facts
    digest: str
    action: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDifference:
    """First difference between a replay and the journal."""

    step: int
    recorded: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    steps: int  # number of steps that were decided again, including the differing one
    difference: ReplayDifference | None
    foreign: tuple[JournalStep, ...] = ()  # steps of other engines, which are not decided again


def states(steps: Iterable[JournalStep]) -> Iterable[tuple[JournalStep, Snapshot]]:
    """Yield each step with its input. Raises JournalError if the facts do not match the digest."""
    shot: Snapshot | None = None
    engine = ""
    for entry in steps:
        shot = apply(shot if entry.engine == engine else None, entry.facts)
        engine = entry.engine
        if shot.digest != entry.digest:
            raise JournalError(
                f"step {entry.number}: its facts do not match the recorded state; the journal"
                " was modified or a line is missing"
            )
        yield entry, shot


def replay(
    steps: Iterable[JournalStep], decide: Callable[[BisectionState, Policy], Action] | None = None
) -> Replay:
    """Decide every step of this engine again and stop at the first difference.

    The sentences of a decision (`why`, `reason`) are not compared: they may be reworded. Raises
    JournalError.
    """
    if decide is None:  # imported here: to read a journal takes neither numpy nor scipy
        from swingbot.core.bisect.decide.step import step

        decide = step
    done = 0
    foreign: list[JournalStep] = []
    for entry, shot in states(steps):
        if entry.engine != ENGINE:
            foreign.append(entry)
            continue
        done += 1
        try:
            state, policy = restored(shot)
        except JournalError as error:
            raise JournalError(f"step {entry.number}: {error}") from None
        decided = decision(decide(state, policy))
        if _without_sentences(entry.action) != _without_sentences(decided):
            difference = ReplayDifference(
                step=entry.number, recorded=text(entry.action), now=text(decided)
            )
            return Replay(steps=done, difference=difference, foreign=tuple(foreign))
    return Replay(steps=done, difference=None, foreign=tuple(foreign))


def _without_sentences(action: Facts) -> str:
    return text({key: value for key, value in action.items() if key not in ("reason", "why")})
