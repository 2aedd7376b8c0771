"""Journals and JSON that earlier engines recorded: they load, and each of their steps is decided
again as it was.

What was recorded (`tests/golden/journal/`) is never written again. `engine/` are simulated
bisections (`record.py` there adds one), `service/` logs and stored documents of the whole service
with its database, `run/` journals of `swingbot bisect run`. Sentences are
left out of the comparison. The last digits of a probability depend on the machine's floating-point
kernels: with those of the recording numbers are compared byte for byte, with others to six digits.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp

from swingbot.app.bisect_run import result_json
from swingbot.app.bisect_run.bisector import Bisector, LinearRange
from swingbot.app.bisect_run.command_pool import CommandPool as RunLab
from swingbot.app.bisect_run.journal import Journal, open_journal
from swingbot.app.bisect_run.repository import Repository
from swingbot.app.commands.bisect_run import run
from swingbot.core.bisect import journal, logbook
from swingbot.core.bisect.belief import belief, belief_json
from swingbot.core.bisect.state import Measure
from swingbot.core.bisect.step import step
from swingbot.core.model.bisection import BisectionTerms
from swingbot.core.model.noise import NoiseRecord
from swingbot.core.model.records import Bisection
from swingbot.core.plan.noise import noise_prior
from swingbot.service.bisect.advance import noise_of, policy_of
from swingbot.service.bisect.explain import shown
from swingbot.service.ports import Lab
from tests.bisect_run_worlds import World, WorldLab, a_range, a_wish
from tests.noisy_repo import make_repo

RECORDED: Final = Path(__file__).parents[1] / "golden" / "journal"
LOGS: Final = sorted((*RECORDED.glob("engine/*.jsonl"), *RECORDED.glob("service/*.log")))
RUNS: Final = sorted(path.stem for path in RECORDED.glob("run/*.log") if path.stem != "merge")
ARITHMETIC: Final = (
    "7966fe1c6d7ce1c7"  # digest of what `arithmetic` gave where the journals were recorded
)


def arithmetic() -> str:
    """A digest of what the engine's elementary functions give here, to the last digit."""
    rng = np.random.default_rng(1)
    x, square = np.abs(rng.normal(size=500)) + 0.1, rng.normal(size=(30, 30))
    positive = square @ square.T + np.eye(30)
    low = cholesky(positive, lower=True)
    results = [
        np.exp(x),
        np.log(x),
        np.sqrt(x),
        np.log1p(x),
        np.cumsum(x),
        positive,
        low,
        solve_triangular(low, x[:30], lower=True),
        np.linalg.solve(positive, x[:30]),
        np.array(np.linalg.slogdet(positive)[1]),
        np.array(logsumexp(-x)),
    ]
    return hashlib.sha256(b"".join(result.tobytes() for result in results)).hexdigest()[:16]


def same(recorded: Any, now: Any) -> bool:
    """Whether two JSON documents are the same but for their sentences, which may be reworded.

    On other arithmetic than that of the record, numbers are compared to six digits.
    """
    recorded, now = _without_words(recorded), _without_words(now)
    if arithmetic() == ARITHMETIC:
        return journal.text(recorded) == journal.text(now)
    return _alike(recorded, now)


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


def documents(name: str) -> Any:
    return json.loads((RECORDED / name).read_text(encoding="utf-8"))


def test_every_kind_of_bisection_was_recorded() -> None:
    ends = {steps_of(path)[-1].action["kind"] for path in LOGS}
    assert ends == {"culprit", "several", "credible_set", "not_reproduced", "inconclusive"}
    text = "".join(path.read_text(encoding="utf-8") for path in LOGS)
    for fact in (
        '"phase":"history"',
        '"layout":1',
        '"box":1',
        '"boxes":2',
        '"paired":true',
        '"same_as":[[',
        '"steer":"skip"',
        '"steer":"unskip"',
        '"steer":"hint"',
        '"steer":"resume"',
        '"max_boots":48',
        '"parent":"b1"',
    ):
        assert fact in text, fact


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recorded_journal_loads_and_is_decided_again(path: Path) -> None:
    for entry, shot in journal.states(steps_of(path)):
        state, policy = journal.restored(shot)
        assert journal.snapshot(state, policy).digest == entry.digest, entry.number
        now = journal.decision(step(state, policy))
        assert same(entry.action, now), (entry.number, entry.action, now)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_differences_of_a_recorded_journal_are_written_the_same_again(path: Path) -> None:
    before: journal.Snapshot | None = None
    for entry, shot in journal.states(steps_of(path)):
        now = journal.snapshot(*journal.restored(shot))
        assert journal.text(journal.difference(before, now)) == journal.text(entry.facts)
        before = now


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recorded_journal_can_be_explained(path: Path) -> None:
    steps = steps_of(path)
    state, _, order = shown(steps)
    assert set(order) == set(state.observations)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("service/*.log")), ids=lambda path: path.stem)
def test_the_belief_of_the_last_step_is_stored_as_it_was(path: Path) -> None:
    *_, (_, shot) = journal.states(steps_of(path))
    state, policy = journal.restored(shot)
    stored = documents(f"service/{path.stem}.json")["belief"]
    now = belief_json(belief(state, policy), state, policy, step(state, policy))
    assert same(stored, json.loads(json.dumps(now)))


@pytest.mark.parametrize(
    "given", documents("terms.json"), ids=lambda given: ",".join(sorted(given["stored"])) or "none"
)
def test_the_stored_terms_of_a_bisection_mean_what_they_did(given: dict[str, Any]) -> None:
    lab = cast(Lab, SimpleNamespace(settings=SimpleNamespace(confidence=0.98, max_boots=123)))
    bisection = a_bisection(given["stored"])
    assert dataclasses.asdict(policy_of(lab, bisection)).items() >= given["policy"].items()
    for paired, noise in zip((False, True), given["noise"], strict=True):
        assert noise_of(bisection, paired).to_json() == noise
    assert list(bisection.testboxes) == given["testboxes"]
    assert (bisection.terms.unit or "") == given["unit"]
    if {"unit", "better"} <= given["stored"].keys():  # older ones are read only
        noise = {"noise": given["noise"][0]} if "noise" in given["stored"] else {}
        assert bisection.terms.to_json() == given["stored"] | noise


def a_bisection(terms: dict[str, Any]) -> Bisection:
    return Bisection(
        id=1,
        tree=1,
        origin="asked",
        good="a" * 40,
        bad="b" * 40,
        testbox="vm-icount",
        spec="s",
        series="",
        unit_job="j",
        metric="m",
        terms=BisectionTerms.from_json(terms),
        status="running",
    )


@pytest.mark.parametrize("given", documents("noise.json"))
def test_a_stored_noise_record_means_what_it_did(given: dict[str, Any]) -> None:
    record = None if given["record"] is None else NoiseRecord.from_json(given["record"])
    assert record is None or journal.text(record.to_json()) == journal.text(given["record"])
    assert same(given["prior"], noise_prior(record, given["paired"]).to_json())


# --- `swingbot bisect run` ------------------------------------------------------------------------


def opened(name: str, place: Path) -> Journal:
    """A copy of a recorded journal, opened as the next call of the same command does."""
    path = place / "log"
    path.write_text((RECORDED / "run" / f"{name}.log").read_text(encoding="utf-8"))
    return open_journal(path, {"cmd": ["bench"]}, restart=False, loose=frozenset())


def a_hunt(kept: Journal) -> Bisector:
    """A bisection in which nothing is measured any more."""
    return Bisector(
        kept,
        cast(RunLab, WorldLab(World())),
        cast(Repository, None),
        a_wish(),
        lambda news, hunt: None,
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_journal_of_bisect_run_gives_its_answer_again(name: str, tmp_path: Path) -> None:
    given = documents(f"run/{name}.json")
    kept = opened(name, tmp_path)
    found = a_hunt(kept).run(a_range(given["commits"]))
    facts = result_json.facts(found, kept.booted, "higher", "")
    kept.close()
    del facts["journal"]
    recorded = given["answer"]
    assert same(recorded, {key: json.loads(json.dumps(facts))[key] for key in recorded})


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_journal_of_bisect_run_asks_for_the_same_boots_again(
    name: str, tmp_path: Path
) -> None:
    kept = opened(name, tmp_path)
    lines = [
        json.loads(line)
        for line in kept.path.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    asked, booted = kept.asked, kept.booted
    kept.close()
    part = LinearRange("", a_range(documents(f"run/{name}.json")["commits"]))
    asks = boots = 0
    for line in lines:
        if "ask" in line:
            hunt = a_hunt(dataclasses.replace(kept, asked=asked[:asks], booted=booted[:boots]))
            action = step(hunt.state(part), hunt.policy(part))
            assert isinstance(action, Measure)
            now = {
                "ask": [[part.range.shas[r.idx], r.k] for r in action.requests],
                "part": "",
                "phase": action.phase,
                "why": action.why,
            }
            assert same(line, now)
            asks += len(line["ask"])
        boots += "boot" in line
    assert (asks, boots) == (len(asked), len(booted))


def test_a_recorded_journal_goes_through_a_merge_again_without_a_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, journal_text = (
        documents("run/merge.json"),
        (RECORDED / "run" / "merge.log").read_text(encoding="utf-8"),
    )
    monkeypatch.chdir(tmp_path)
    ids = make_repo(tmp_path / "repo", given["commits"], {6: range(20, 25)})
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "log").write_text(journal_text)
    done = CliRunner().invoke(
        run,
        [
            *(f"{ids[0]}..main", "--repo", "repo", "--json", "--state", "state"),
            *("--", "sh", "-c", ". ./table/$SWINGBOT_COMMIT"),  # there is no such file
        ],
    )
    assert "boot 1:" not in done.stderr and re.search(r"resuming after \d+ boots", done.stderr)
    facts = json.loads(done.stdout)
    del facts["journal"]
    assert facts["answered_before"]["boots"] == facts["boots"]
    assert same(given["answer"], {key: facts[key] for key in given["answer"]})
    assert (tmp_path / "state" / "log").read_text() == journal_text
