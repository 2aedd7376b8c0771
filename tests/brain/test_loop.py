"""The brain from a moved branch to a delivered mail, on a real database, a real git repository
and a real mail server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.core.model.records import JobFile
from swingbot.service.bisect.start import BisectionRequest, start_bisection
from swingbot.service.ports import RequestError
from swingbot.service.table.request import ComparisonRequest, request_comparison
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import METRIC, Brain, make_brain
from tests.fakes.mail import brain_environment, running_smtpd


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(environ=brain_environment(tmp_path / "state", db_url))
    repo = tmp_path / "linux"
    make_fakelinux(repo, [])
    with running_smtpd(settings):
        yield make_brain(settings, engine, repo)


def commits(brain: Brain, *made: FakeCommit) -> list[str]:
    return add_commits(brain.repo, made)


def base_of(brain: Brain) -> str:
    return brain.lab.git.fetch_branch("base", str(brain.repo), "main")


def plain(n: int) -> list[FakeCommit]:
    return [FakeCommit() for _ in range(n)]


def test_a_slow_commit_is_found_and_mailed_once(brain: Brain) -> None:
    base = base_of(brain)
    brain.watch(base)
    brain.run()
    made = commits(brain, *plain(6), FakeCommit(speed=88), *plain(5))
    brain.poll()
    brain.run()
    (subject,) = brain.mails
    assert f"{made[6][:12]}: {METRIC} 12.0% worse" in subject
    bisection = brain.facts("b")
    assert bisection["status"] == "culprit"
    assert bisection["culprit"]["commit"] == made[6]
    assert bisection["change_pct"] == pytest.approx(-12, abs=0.2)
    incident = brain.facts("i")
    assert incident["culprit"]["commit"] == made[6]
    report = brain.facts("r")
    assert report["state"] == "sent"
    assert "12.0% worse" in report["body"]
    brain.run()
    assert len(brain.mails) == 1


def test_a_branch_without_a_culprit_makes_no_mail(brain: Brain) -> None:
    base = base_of(brain)
    commits(brain, *plain(12))
    brain.watch(base)
    brain.run()
    assert brain.mails == []
    assert {row["verdict"] for row in brain.facts("c")["rows"] if row["class"] == "benchmark"} == {
        "same"
    }
    assert brain.count("bisection") == 0


def test_an_improvement_is_noted_and_not_mailed(brain: Brain) -> None:
    base = base_of(brain)
    commits(brain, *plain(3), FakeCommit(speed=109), *plain(3))
    brain.watch(base)
    brain.run()
    assert brain.mails == []
    assert [row["verdict"] for row in brain.facts("c")["rows"] if row["headline"]] == ["better"]


def test_commits_that_do_not_build_or_boot_never_vote(brain: Brain) -> None:
    base = base_of(brain)
    made = commits(
        brain,
        *plain(3),
        FakeCommit(kind="broken"),
        *plain(2),
        FakeCommit(speed=90),
        *plain(1),
        FakeCommit(kind="unbootable"),
        *plain(4),
    )
    brain.watch(base)
    brain.run()
    assert brain.facts("b")["culprit"]["commit"] == made[6]
    assert len(brain.mails) == 1


def test_a_rebased_branch_is_compared_with_the_merge_base(brain: Brain) -> None:
    base = base_of(brain)
    old = commits(brain, *plain(4))
    brain.watch(base)
    brain.run()
    subprocess.run(["git", "-C", str(brain.repo), "reset", "-q", "--hard", old[1]], check=True)
    new = commits(brain, FakeCommit(speed=85), *plain(2))
    brain.poll()
    brain.run()
    comparison = brain.facts("c", 2)
    assert comparison["base"] == old[1]
    assert comparison["head"] == new[-1]
    assert brain.facts("b")["culprit"]["commit"] == new[0]


def test_asking_twice_is_asking_once(brain: Brain) -> None:
    base = base_of(brain)
    made = commits(brain, *plain(2))
    brain.watch(base)
    wish: dict[str, Any] = {
        "tree": "fake",
        "base": base,
        "head": made[1],
        "job_files": [],
        "overrides": {},
        "testboxes": [],
        "boots": 2,
        "patches": [],
    }
    first = request_comparison(
        brain.lab, ComparisonRequest(**{**wish, "base": "base", "head": "tip"})
    )
    assert request_comparison(brain.lab, ComparisonRequest(**wish)) == first
    brain.run()
    assert request_comparison(brain.lab, ComparisonRequest(**wish)) == first


def test_a_bisection_by_hand_finds_an_improvement_too_and_sends_nothing(brain: Brain) -> None:
    base = base_of(brain)
    made = commits(brain, *plain(2), FakeCommit(speed=110), *plain(3))
    brain.watch(base)
    number = start_bisection(
        brain.lab,
        BisectionRequest(
            tree="fake",
            good=made[-1],
            bad=base,
            job_files=[],
            overrides={},
            metric=METRIC,
            testbox=None,
        ),
    )
    brain.run()
    found = brain.facts("b", number)
    assert found["culprit"]["commit"] == made[2]
    assert found["change_pct"] == pytest.approx(10, abs=0.3)
    assert brain.mails == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({"branch": "nosuch"}, "nosuch"),
        ({"base": "v9.99"}, "v9.99"),
        ({"testboxes": ["toaster"]}, "toaster"),
        ({"kconfig": "nosuch"}, "nosuch"),
        (
            {"job_files": [JobFile(name="bad.yaml", text="page-fault:\n  nr_tusk: 3\n")]},
            "bad.yaml:2",
        ),
        ({"job_files": []}, "--job"),
    ],
)
def test_a_tree_that_makes_no_sense_is_refused_in_one_sentence(
    brain: Brain, change: dict[str, Any], message: str
) -> None:
    base = base_of(brain)
    with pytest.raises(RequestError, match=r".") as refused:
        brain.watch(**{"base": base, **change})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert brain.count("tree") == 0


def test_two_trees_on_two_testboxes_do_not_disturb_each_other(brain: Brain) -> None:
    base = base_of(brain)
    subprocess.run(["git", "-C", str(brain.repo), "checkout", "-q", "-b", "other"], check=True)
    other = commits(brain, *plain(2), FakeCommit(speed=80), *plain(4))
    subprocess.run(["git", "-C", str(brain.repo), "checkout", "-q", "main"], check=True)
    first = commits(brain, *plain(5), FakeCommit(speed=90), *plain(2))
    brain.watch(base)
    brain.watch(base, name="noisy", branch="other", testboxes=["vm-tcg"])
    brain.run()
    named = {
        brain.facts("b", n)["testbox"]: brain.facts("b", n)["culprit"]["commit"] for n in (1, 2)
    }
    assert named == {"vm-icount": first[5], "vm-tcg": other[2]}
    assert len(brain.mails) == 2
