"""Record journals of simulated bisections: `python -m tests.golden.journal.record`.

An engine decides each step of a journal under its name as it is recorded here; an engine that
decides otherwise gets another name (`ENGINE`) and new journals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.state import BisectionState, Conclude, Measure
from swingbot.core.bisect.tell import journal, logbook
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.noise import EMULATED
from tests.simulate import Costs, Laboratory, a_state, known_noise, with_history
from tests.worlds import SimulatedBench

STEPS = Path(__file__).parent / "steps"
Shown = tuple[BisectionState, Policy]
Steer = Callable[[BisectionState, Policy], Shown]


@dataclass(frozen=True, kw_only=True)
class Play:
    """A bisection to record. `steers`: number of a decision -> what changes before it."""

    bench: SimulatedBench
    state: BisectionState
    policy: Policy = field(default_factory=Policy)
    steers: Mapping[int, Steer] = field(default_factory=dict)
    ahead: int = 0


@dataclass(kw_only=True)
class Shifted(SimulatedBench):
    """Values around zero: bisected by difference."""

    def boot(
        self, idx: int, k: int, layout: int = 0, testbox: int = 0, at: float = 0.0, order: int = 0
    ) -> tuple[tuple[float, ...], str | None]:
        values, skip = super().boot(idx, k, layout, testbox, at, order)
        return tuple(value - self.level for value in values), skip


@dataclass(kw_only=True)
class Denied(SimulatedBench):
    """A step that confirmation boots do not show: they measure what the good end does."""

    fresh: set[tuple[int, int]] = field(default_factory=set)  # (kernel, k) of these boots

    def boot(
        self, idx: int, k: int, layout: int = 0, testbox: int = 0, at: float = 0.0, order: int = 0
    ) -> tuple[tuple[float, ...], str | None]:
        return super().boot(0 if (idx, k) in self.fresh else idx, k, layout, testbox, at, order)


def skipped(idx: int, why: str | None) -> Steer:
    """A person has a point skipped; None takes the skip back."""
    return lambda state, policy: (_with_point(state, idx, skipped=why), policy)


def hinted(idx: int, factor: float) -> Steer:
    return lambda state, policy: (
        _with_point(state, idx, weight=state.points[idx].weight * factor),
        policy,
    )


def _with_point(state: BisectionState, idx: int, **changes: object) -> BisectionState:
    points = list(state.points)
    points[idx] = replace(points[idx], **changes)  # type: ignore[arg-type]
    return replace(state, points=tuple(points))


def noisy(**world: object) -> SimulatedBench:
    """A testbox without a shift common to its boots."""
    return SimulatedBench(
        **{"commits": 24, "run_noise": 0.02, "boot_noise": 0.01, "runs": 2, "seed": 1, **world}  # type: ignore[arg-type]
    )


def repeatable(**world: object) -> SimulatedBench:
    """A testbox on which boot k shifts all kernels alike."""
    usual = {"layout_noise": 0.002, "pert_noise": 0.003, "boot_noise": 0.0003, "run_noise": 0.002}
    return SimulatedBench(**{"seed": 1, **usual, **world})  # type: ignore[arg-type]


def plays() -> dict[str, Play]:
    """Name -> what is recorded under it."""
    steered = noisy(culprit=17, effect=-0.06, seed=2)
    layouts = noisy(commits=10, culprit=6, effect=-0.05, layout_noise=0.01, seed=4)
    testboxes = noisy(culprit=5, effect=-0.06, testbox_noise=0.03, seed=5)
    same = noisy(culprit=None, seed=6)
    dead = noisy(culprit=12, effect=-0.1, unbuildable=(11,), unbootable=(3, 13), seed=7)
    small = noisy(culprit=12, effect=-0.02, boot_noise=0.03, seed=8)
    wander = noisy(culprit=15, effect=-0.06, drift=0.02, heavy=0.1, runs=1, seed=9)
    before = noisy(culprit=20, effect=-0.05, runs=1, seed=10)
    emulated = repeatable(culprit=9, effect=-0.05, identical={4: 3}, unbuildable=(12,))
    flaky = repeatable(culprit=4, effect=-0.03, boot_failure_rate=0.6, seed=16)
    opposite = noisy(commits=20, culprit=5, effect=-0.04, others={15: 0.04}, runs=1, seed=0)
    equal = repeatable(identical={8: 0, 16: 0, 12: 0})
    zero = Shifted(commits=12, culprit=7, effect=-0.5, run_noise=0.1, boot_noise=0.05, seed=12)
    creep = noisy(
        commits=40,
        culprit=None,
        others=dict.fromkeys(range(1, 41), 0.88 ** (1 / 40) - 1),
        boot_noise=0.02,
        runs=3,
        seed=2,
    )
    denied = Denied(commits=2, culprit=2, effect=-0.05, run_noise=0.003, boot_noise=0.005, runs=1)
    nested = repeatable(commits=24, culprit=5, effect=-0.1, others={18: 0.06}, unbootable=(17,))
    return {
        "steered": _play(
            steered,
            steers={
                8: skipped(12, "skipped by ada: hangs here"),
                9: hinted(17, 20.0),
                11: skipped(12, None),
            },
        ),
        "layouts": _play(layouts, layouts=True),
        "two-testboxes": _play(testboxes, testboxes=2, ahead=7),
        "not-reproduced": _play(same),
        "credible-set": _play(dead),
        "inconclusive": _play(small, policy=Policy(max_boots=20)),
        "wandering-parallel": _play(wander, policy=Policy(parallel=2)),
        "history-two-testboxes": Play(
            bench=before,
            state=with_history(before, a_state(before, noise=known_noise(before), testboxes=2), 12),
        ),
        "unclear": _play(opposite, policy=Policy(max_end_boots=6)),
        "difference": _play(zero),
        "creep": _play(creep, policy=Policy(max_boots=40)),
        "repeatable": _paired(emulated),
        "denied": Play(
            bench=denied,
            state=with_history(denied, a_state(denied, noise=known_noise(denied)), 30),
        ),
        "repeatable-flaky": _paired(flaky),
        "repeatable-equal-ends": _paired(equal),
        "repeatable-dead-end": _paired(repeatable(unbootable=(16,))),
        "repeatable-several": _paired(nested),
    }


def _play(
    bench: SimulatedBench,
    *,
    policy: Policy | None = None,
    steers: Mapping[int, Steer] | None = None,
    ahead: int = 0,
    layouts: bool = False,
    testboxes: int = 1,
) -> Play:
    state = a_state(bench, noise=known_noise(bench), layouts=layouts, testboxes=testboxes)
    return Play(
        bench=bench, state=state, policy=policy or Policy(), steers=steers or {}, ahead=ahead
    )


def _paired(bench: SimulatedBench) -> Play:
    return Play(bench=bench, state=a_state(bench, paired=True, noise=EMULATED))


def recorded(play: Play) -> list[journal.JournalStep]:
    """The steps as the service notes them, until the bisection concludes and no person steers it
    any more."""
    lab, policy = Laboratory(play.bench, play.state, Costs()), play.policy
    noted: list[journal.JournalStep] = []
    before: journal.Snapshot | None = None
    for number in range(1, 2000):
        if number in play.steers:
            lab.state, policy = play.steers[number](lab.state, policy)
        lab.state = journal.canonical(lab.state)
        action, now = step(lab.state, policy), journal.snapshot(lab.state, policy)
        facts, decision = journal.difference(before, now), journal.decision(action)
        last = noted[-1] if noted else None
        new = last is None or last.digest != now.digest
        if new and journal.worth_noting(last.action if last else None, facts, decision):
            noted.append(_entry(len(noted) + 1, now.digest, facts, decision))
            before = now
        if isinstance(action, Conclude):
            if number >= max(play.steers, default=0):
                return noted
            continue
        if isinstance(action, Measure):
            if isinstance(play.bench, Denied) and action.phase == "confirm":
                play.bench.fresh |= {(r.idx, r.k) for r in action.requests}
            lab.place(action)
        if play.ahead:
            lab.build_ahead(play.ahead, policy)
        lab.wait()
    raise AssertionError("the bisection does not end")


def _entry(
    number: int, digest: str, facts: journal.Facts, action: journal.Facts
) -> journal.JournalStep:
    return journal.JournalStep(
        number=number,
        at=f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000000Z",
        engine=journal.ENGINE,
        facts=facts,
        digest=digest,
        action=action,
    )


def a_book(name: str, play: Play, steps: list[journal.JournalStep]) -> logbook.Logbook:
    last = len(play.state.points) - 1
    return logbook.Logbook(
        head={
            "bisection": "b1",
            "tree": "simulated",
            "good": f"{0:040x}",
            "bad": f"{last:040x}",
            "testbox": "simulated",
            "unit_job": name,
            "metric": "simulated.ops",
            "origin": "asked",
            "asked": "2026-01-01T00:00:00.000000Z",
        },
        commits=[(f"{i:040x}", f"commit {i}") for i in range(last + 1)],
        steps=steps,
        steers=[],
        end=None,
    )


def main() -> None:
    for name, play in plays().items():
        steps = recorded(play)
        text = logbook.written(a_book(name, play, steps), people=False)
        (STEPS / f"{name}.jsonl").write_text(text, encoding="utf-8")
        end = steps[-1].action
        print(f"{name}: {len(steps)} steps, {end['kind']} {end['members']}: {end['reason']}")


if __name__ == "__main__":
    main()
