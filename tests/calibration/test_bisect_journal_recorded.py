"""Journals of this engine: they load, and each of their steps is decided again as it was recorded
(`tests/golden/journal/record.py`). A journal of another engine is shown and not decided again.

Sentences are left out of the comparison. The last digits of a probability depend on the machine's
floating-point kernels, so numbers are compared to six digits.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.tell import journal, logbook

RECORDED: Final = Path(__file__).parents[1] / "golden" / "journal"
LOGS: Final = sorted(RECORDED.glob("steps/*.jsonl"))
ANOTHER: Final = RECORDED / "another-engine.log"


def same(recorded: Any, now: Any) -> bool:
    """Whether two JSON documents are the same to six digits but for their sentences, which may be
    reworded.
    """
    return _alike(_without_words(recorded), _without_words(now))


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: None if key in ("why", "reason") else _without_words(item)
            for key, item in value.items()
        }
    return [_without_words(item) for item in value] if isinstance(value, list) else value


def _alike(recorded: Any, now: Any) -> bool:
    if isinstance(recorded, dict):
        return recorded.keys() == now.keys() and all(
            key == "candidates_sha256" or _alike(value, now[key]) for key, value in recorded.items()
        )
    if isinstance(recorded, list):
        return len(recorded) == len(now) and all(map(_alike, recorded, now))
    if isinstance(recorded, float) and isinstance(now, float):
        return now == pytest.approx(recorded, rel=1e-6, abs=1e-9)
    return bool(recorded == now)


def steps_of(path: Path) -> list[journal.JournalStep]:
    return logbook.read(path.read_text(encoding="utf-8").split("\n"))


def test_every_kind_of_bisection_was_recorded() -> None:
    ends = {steps_of(path)[-1].action["kind"] for path in LOGS}
    assert ends == {"culprit", "several", "credible_set", "not_reproduced", "inconclusive"}
    text = "".join(path.read_text(encoding="utf-8") for path in LOGS)
    for fact in (
        '"phase":"history"',
        '"layout":1',
        '"testbox":1',
        '"testboxes":2',
        '"paired":true',
        '"same_as":[[',
        '"skipped":[[12,12,"skipped by ada: hangs here"]]',
        '"weight":[[17,17,20.0]]',
    ):
        assert fact in text, fact


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_recorded_journal_is_decided_again(path: Path) -> None:
    before: journal.Snapshot | None = None
    for entry, shot in journal.states(steps_of(path)):
        assert entry.engine == journal.ENGINE
        state, policy = journal.restored(shot)
        again = journal.snapshot(state, policy)
        assert journal.text(journal.difference(before, again)) == journal.text(entry.facts)
        now = journal.decision(step(state, policy))
        assert same(entry.action, now), (entry.number, entry.action, now)
        before = again


def test_a_journal_of_another_engine_is_shown_and_not_decided_again() -> None:
    steps = steps_of(ANOTHER)
    done = journal.replay(steps, lambda state, policy: pytest.fail("decided again"))
    assert (done.steps, done.difference, list(done.foreign)) == (0, None, steps)
    shown = CliRunner().invoke(main, ["bisect", "replay", str(ANOTHER)])
    assert shown.exit_code == 3, shown.output
    lines = shown.output.splitlines()
    assert lines[:-1] == [logbook.decided(entry) for entry in steps]
    assert lines[-1] == (
        f"{len(steps)} steps of {len(steps)}: decided by engine 7a54c522b507; this is engine"
        f" {journal.ENGINE}, which shows what was recorded and does not decide it again"
    )
    facts = json.loads(
        CliRunner().invoke(main, ["bisect", "replay", str(ANOTHER), "--json"]).output
    )
    assert (facts["steps"], facts["same"], facts["recorded_by"]) == (0, None, ["7a54c522b507"])


def test_a_journal_that_two_engines_wrote_is_decided_again_from_the_change_on() -> None:
    """The first step after the change has all facts."""
    other, own = steps_of(ANOTHER), steps_of(RECORDED / "steps" / "repeatable-dead-end.jsonl")
    steps = [*other, *(replace(entry, number=entry.number + len(other)) for entry in own)]
    done = journal.replay(steps)
    assert (done.steps, done.difference, list(done.foreign)) == (len(own), None, other)
