"""The journal of a bisection, its replay, its explanation and its picture; on simulated benches,
without a database."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.state import BisectionState, Conclude, Measure, PointState
from swingbot.core.bisect.tell import journal, logbook
from swingbot.core.bisect.tell.explain import explain, influences, leader
from swingbot.core.bisect.tell.explain_text import paragraphs
from swingbot.core.bisect.tell.journal import JournalError, JournalStep
from swingbot.core.bisect.tell.text_plot import PlotPoint, picture
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import NoisePrior

POLICY = Policy()
LEVELS = (1000.0, 880.0)
Boot = Callable[[int, int], tuple[float, ...]]


def bench(culprit: int = 5) -> Boot:
    """Boots that differ by a per mille or two, by a rule."""
    return lambda idx, k: tuple(
        LEVELS[idx >= culprit] * (1 + 0.001 * ((idx * 7 + k * 5 + run * 3) % 5 - 2))
        for run in range(3)
    )


def a_range(n: int = 8) -> BisectionState:
    points = tuple(
        PointState(idx=i, weight=float(i > 0), build_cost_seconds=30.0) for i in range(n + 1)
    )
    return BisectionState(
        points=points,
        noise=NoisePrior(sd_run=0.002, sd_boot=0.002, sd_layout=0.0),
        boot_cost_seconds=9.0,
    )


def played(
    state: BisectionState, boot: Boot, steps: int = 100
) -> tuple[list[JournalStep], BisectionState, list[Observation]]:
    """Steps as the service notes them, the last state, and its observations in order."""
    noted: list[JournalStep] = []
    before: journal.Snapshot | None = None
    order: list[Observation] = []
    while len(noted) < steps:
        state = journal.canonical(state)
        action, now = step(state, POLICY), journal.snapshot(state, POLICY)
        facts = json.loads(journal.text(journal.difference(before, now)))
        noted.append(
            JournalStep(
                number=len(noted) + 1,
                at=f"t{len(noted):03}",
                engine=journal.ENGINE,
                facts=facts,
                digest=now.digest,
                action=journal.decision(action),
            )
        )
        before = now
        if isinstance(action, Conclude) or len(noted) == steps:
            break
        assert isinstance(action, Measure)
        came = [
            Observation(idx=r.idx, k=r.k, values=boot(r.idx, r.k), phase=action.phase)
            for r in action.requests
        ]
        points = tuple(
            dataclasses.replace(p, built=p.built or p.idx in {o.idx for o in came})
            for p in state.points
        )
        order += came
        state = dataclasses.replace(
            state, observations=state.observations + tuple(came), points=points
        )
    return noted, state, order


def a_book(steps: list[JournalStep], commits: int = 9) -> logbook.Logbook:
    head = {
        "bisection": "b1",
        "metric": "m",
        "unit_job": "j",
        "testbox": "x",
        "tree": "t",
        "asked": "t000",
        "origin": "asked",
    }
    return logbook.Logbook(
        head=head,
        commits=[(f"{i:040x}", f"subject {i}\n{{}}") for i in range(commits)],
        steps=steps,
        steers=[],
        end=None,
    )


def test_a_written_log_is_read_and_decided_again() -> None:
    steps, _, _ = played(a_range(), bench())
    assert steps[-1].action["kind"] == "culprit"
    for people in (True, False):
        found = logbook.read(logbook.written(a_book(steps), people=people).split("\n"))
        assert [entry.digest for entry in found] == [entry.digest for entry in steps]
        assert journal.replay(found) == journal.Replay(steps=len(steps), difference=None)


def test_a_replay_stops_at_the_first_other_decision() -> None:
    steps, _, _ = played(a_range(), bench())
    other = journal.replay(
        steps, lambda state, policy: step(state, dataclasses.replace(policy, boots_per_end=3))
    )
    assert other.difference is not None
    assert other.difference.step == 1
    assert other.difference.recorded != other.difference.now


def test_a_reworded_decision_is_the_same_decision() -> None:
    steps, _, _ = played(a_range(), bench())
    reworded = [
        dataclasses.replace(
            entry,
            action={
                key: "in other words" if key in ("why", "reason") else value
                for key, value in entry.action.items()
            },
        )
        for entry in steps
    ]
    assert any("reason" in entry.action for entry in reworded)
    assert journal.replay(reworded) == journal.Replay(steps=len(steps), difference=None)


def test_what_varies_in_time_is_given_back_exactly() -> None:
    state = a_range()
    seen = Observation(idx=0, k=0, values=(0.1 + 0.2, 1e-17, 3.0), phase="ends", at=1.5)
    points = list(state.points)
    points[3] = dataclasses.replace(
        points[3], weight=0.0, same_as=2, built=True, build_cost_seconds=0.1
    )
    points[4] = dataclasses.replace(points[4], skipped="a person said so", weight=20.0)
    flying = (WantedBoot(8, 0, "ends"),)
    later = dataclasses.replace(
        state,
        points=tuple(points),
        observations=(seen,),
        in_flight=flying,
        boot_cost_seconds=8.25,
        noise=NoisePrior(sd_run=0.1),
    )
    first, second = (
        journal.snapshot(state, POLICY),
        journal.snapshot(later, dataclasses.replace(POLICY, max_boots=7)),
    )
    facts = json.loads(journal.text(journal.difference(first, second)))
    assert set(facts["points"]) == {"weight", "same_as", "built", "build_cost_seconds", "skipped"}
    assert facts["policy"] == {"max_boots": 7}
    again = journal.apply(
        journal.apply(None, json.loads(journal.text(journal.difference(None, first)))), facts
    )
    assert again.digest == second.digest
    assert journal.restored(again) == (later, dataclasses.replace(POLICY, max_boots=7))


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 9)), max_size=12),
    st.lists(st.floats(0, 9) | st.none(), min_size=6, max_size=6),
)
def test_runs_of_points_and_back(
    changes: list[tuple[int, float]], column: list[float | None]
) -> None:
    now = list(column)
    for i, value in changes:
        now[i] = value
    one, two = (journal.Snapshot({}, {}, {"weight": c}, (), ()) for c in (column, now))
    assert (
        journal.apply(one, json.loads(journal.text(journal.difference(one, two)))).points["weight"]
        == now
    )


def test_a_wait_that_only_sees_costs_move_is_not_worth_noting() -> None:
    wait = {"do": "wait", "why": "boots are in flight"}
    assert not journal.worth_noting(
        wait,
        {"points": {"build_cost_seconds": [[1, 2, 3.0]]}, "state": {"boot_cost_seconds": 4.0}},
        wait,
    )
    some: list[dict[str, Any]] = [
        {"points": {"weight": [[1, 1, 0.0]]}},
        {"in_flight": []},
        {"seen": [{}]},
        {"policy": {"max_boots": 3}},
    ]
    for facts in some:
        assert journal.worth_noting(wait, facts, wait)
    assert journal.worth_noting(wait, {}, wait | {"why": "other"})
    assert journal.worth_noting(None, {}, wait)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda lines: [*lines[:-1], "{"], "not JSON"),
        (lambda lines: [*lines, "[]"], "not a record"),
        (lambda lines: ['{"version":9}', *lines], "version 9"),
        (
            lambda lines: [line for line in lines if '"step":2' not in line],
            "step 3 instead of step 2",
        ),
        (
            lambda lines: [line.replace('"digest":', '"digits":') for line in lines],
            r"line \d+: digest: is missing",
        ),
        (
            lambda lines: [line.replace('"digest":"', '"digest":"0') for line in lines],
            "do not match the recorded state",
        ),
        (
            lambda lines: [line.replace('"weight"', '"wait"') for line in lines],
            "do not match the recorded state",
        ),
        (
            lambda lines: [line.replace('"points":{', '"points":{"x":7,') for line in lines],
            "the facts of the step are not valid",
        ),
        (lambda lines: [line for line in lines if '"step"' not in line], "no recorded steps"),
        (lambda lines: ["[" * 100_000], "not JSON"),
    ],
)
def test_a_spoilt_log_is_refused_in_one_sentence(
    spoil: Callable[[list[str]], list[str]], sentence: str
) -> None:
    steps, _, _ = played(a_range(), bench(), steps=4)
    lines = spoil(logbook.written(a_book(steps), people=False).splitlines())
    with pytest.raises(JournalError, match=sentence) as refused:
        journal.replay(logbook.read(lines))
    assert "\n" not in str(refused.value)


def test_a_field_that_this_engine_does_not_have_is_named() -> None:
    with pytest.raises(JournalError, match="PointState: key 'colour' is unknown here"):
        journal.typed(PointState, {"idx": 1, "colour": "red"})
    with pytest.raises(JournalError, match="PointState.weight: 'heavy' is not a finite number"):
        journal.typed(PointState, {"idx": 1, "weight": "heavy"})


def test_no_subject_of_a_commit_makes_a_line_of_its_own() -> None:
    steps, _, _ = played(a_range(), bench(), steps=3)
    text = logbook.written(a_book(steps))
    assert all(line.startswith(("#", "{")) for line in text.splitlines())
    assert len(logbook.read(text.split("\n"))) == 3


# --- explaining -----------------------------------------------------------------------------------


def test_the_boots_that_tell_are_those_beside_the_step() -> None:
    _, state, order = played(a_range(), bench(5))
    found = {(i.boots[0].idx, i.boots[0].k): i.bits for i in influences(state, POLICY, order)}
    strongest = max(found, key=lambda key: found[key])
    assert strongest[0] not in (0, 8)
    assert all(bits >= 0 for bits in found.values())


def test_more_boots_than_can_be_looked_at_one_by_one_are_taken_together() -> None:
    _, state, order = played(a_range(), bench())
    many = [dataclasses.replace(o, k=o.k + 50 * i) for i in range(20) for o in order]
    state = dataclasses.replace(state, observations=tuple(many))
    groups = list(influences(state, POLICY, many))
    assert len(groups) <= 60
    assert sum(len(i.boots) for i in groups) == len(many)


def test_an_explanation_says_what_both_answers_of_the_next_boot_would_do() -> None:
    _, state, order = played(a_range(16), bench(5), steps=2)
    found = explain(state, POLICY, order)
    assert isinstance(found.action, Measure)
    asked = {r.idx for r in found.action.requests}
    assert {w.idx for w in found.what_ifs} <= asked
    good, bad = found.what_ifs[:2]
    assert good.leader is not None and bad.leader is not None
    assert bad.leader[0] <= good.idx < good.leader[0]


def test_a_named_culprit_comes_with_how_many_boots_would_clear_it() -> None:
    _, state, order = played(a_range(), bench(5))
    found = explain(state, POLICY, order)
    assert isinstance(found.action, Conclude)
    assert leader(found.belief) is not None and leader(found.belief)[0] == 5  # type: ignore[index]  # not None, said just before
    lines = paragraphs(
        found,
        state,
        [(f"{i:040x}", f"subject {i}") for i in range(9)],
        "ops/s",
    )
    assert any(line.startswith("Finished: confirmed by") for line in lines)
    assert not any("\n" in line for line in lines)


def test_before_any_boot_nothing_is_claimed() -> None:
    state = a_range()
    found = explain(state, POLICY, [])
    assert (found.influences, found.what_ifs) == ((), ())
    lines = paragraphs(found, state, [(f"{i:040x}", "s") for i in range(9)], "")
    assert "Levels: unknown until both ends are measured." in lines


# --- the picture ----------------------------------------------------------------------------------


def lines(n: int = 40, culprit: int = 20) -> list[PlotPoint]:
    return [
        PlotPoint(
            idx=i,
            commit=f"{i:040x}",
            subject=f"mm: commit {i} 変更 \x1b[31m\n",
            probability=None if i == 0 else 0.97 if i == culprit else 0.03 / n,
            boots=2 if i in (0, culprit, n) else 0,
            mean=123456.7 if i in (0, culprit, n) else None,
            sd=12.3 if i in (0, culprit, n) else None,
            mark="culprit" if i == culprit else "skipped" if i == 7 else "",
            hint=10.0 if i == 9 else 1.0,
        )
        for i in range(n + 1)
    ]


@pytest.mark.parametrize("width", [48, 80, 100, 160])
@pytest.mark.parametrize("ascii", [True, False])
def test_a_picture_fits_the_terminal_and_carries_no_control_character(
    width: int, ascii: bool
) -> None:
    text = picture(lines(), width=width, ascii=ascii, p_none=0.01)
    assert all(len(line) <= width for line in text.splitlines())
    assert all(c.isprintable() or c == "\n" for c in text)


def test_a_picture_folds_what_nobody_suspects_and_keeps_what_somebody_touched() -> None:
    text = picture(lines(), width=120, ascii=True).splitlines()
    assert len(text) < 12
    assert any("[skipped]" in line for line in text) and any("hint x10" in line for line in text)
    assert sum(" commits " in line for line in text) == 3
    assert len(picture(lines(), width=120, everything=True).splitlines()) == 41


def test_a_likelier_commit_has_a_longer_bar_and_ascii_is_ascii() -> None:
    some = [
        dataclasses.replace(line, probability=p, subject="s")
        for line, p in zip(lines(4)[1:4], (0.1, 0.2, 0.7), strict=True)
    ]
    bars = [line.count("#") for line in picture(some, width=100, ascii=True).splitlines()]
    assert bars == sorted(bars) and bars[0] < bars[1] < bars[2]
    assert picture(some, width=100, ascii=True).isascii()


def test_an_empty_picture_is_no_crash() -> None:
    assert picture([], width=80) == ""
