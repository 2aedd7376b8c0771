"""The brain from a moved branch to a delivered mail, on a real database, a real git repository and a real mail server."""

from __future__ import annotations

import dataclasses
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.adapters.maildir import letters
from swingbot.app.settings import Settings, load
from swingbot.app.wiring import mail_ways, make_lab, sync_testboxes
from swingbot.core.model.records import JobFile
from swingbot.service.cancel_request import cancel_comparison
from swingbot.service.ports import Lab, RequestError
from swingbot.service.request_comparison import request_comparison
from swingbot.service.send_reports import send_due
from swingbot.service.start_bisection import start_bisection
from swingbot.service.tick import tick
from swingbot.service.watch_trees import add_tree, poll_tree
from swingbot_db import read
from swingbot_db.reports import PostgresOutbox
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.lab import FakeLab
from tests.fakes.mail import running_smtpd

JOB = JobFile(name="vm-page-fault.yaml", text=(Path(__file__).parents[2] / "jobs" / "vm-page-fault.yaml").read_text())
METRIC = "page-fault.per_process_ops"


@dataclasses.dataclass(kw_only=True)
class Brain:
    """A loop without its process: `run` ticks and lets the fake lab work until nothing moves any more."""

    settings: Settings
    engine: sa.Engine
    lab: Lab
    fake: FakeLab
    repo: Path

    def run(self) -> None:
        mailer, archive = mail_ways(self.settings)
        for _ in range(400):
            tick(self.lab)
            send_due(PostgresOutbox(self.engine), mailer, archive, self.lab.now())
            if self.fake.work() == 0 and self._quiet():
                return
        raise AssertionError("the brain does not come to rest")

    def _quiet(self) -> bool:
        with self.engine.connect() as conn:
            open_ = (
                "SELECT (SELECT count(*) FROM comparison WHERE status IN ('waiting', 'running')) + (SELECT count(*) FROM bisection WHERE status = 'running')"
                " + (SELECT count(*) FROM report WHERE state IN ('queued', 'sending')) + (SELECT count(*) FROM orders WHERE state IN ('waiting', 'ready', 'running'))"
                " + (SELECT count(*) FROM swing WHERE state IN ('open', 'bisecting'))"
                " + (SELECT count(*) FROM incident i JOIN comparison c ON c.id = i.comparison LEFT JOIN report r ON r.incident = i.id WHERE r.id IS NULL)"
            )
            return conn.execute(sa.text(open_)).scalar() == 0

    def watch(self, base: str, **more: Any) -> None:
        tree = add_tree(
            self.lab,
            **{
                "name": "fake",
                "url": str(self.repo),
                "branch": "main",
                "base": base,
                "job_files": [JOB],
                "testboxes": ["vm-icount"],
                "paths": [],
                "kconfig": "vm-x86_64",
                "compiler": "gcc",
                **more,
            },
        )
        assert poll_tree(self.lab, tree) is None

    def poll(self) -> None:
        with self.lab.transaction("read") as store:
            (tree,) = store.trees()
        assert poll_tree(self.lab, tree) is None

    def facts(self, kind: str, number: int = 1) -> dict[str, Any]:
        with self.engine.connect() as conn:
            found: dict[str, Any] = {"c": read.comparison, "b": read.bisection, "i": read.incident, "r": read.report}[kind](conn, f"{kind}{number}")
            return found

    def count(self, table: str) -> int:
        with self.engine.connect() as conn:
            return int(conn.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one())

    @property
    def mails(self) -> list[str]:
        return [letter.subject for letter in letters(self.settings.maildir)]


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    state = tmp_path / "state"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1] - 3  # the local mail server listens three above the web service
    environment = {
        "SWINGBOT_PATHS_STATE": str(state),
        "SWINGBOT_DB_URL": db_url,
        "SWINGBOT_WEB_PORT": str(port),
        "SWINGBOT_MAIL_RELEASE": "release",
    }
    settings = load(environ=environment)
    repo = tmp_path / "linux"
    make_fakelinux(repo, [])
    lab = make_lab(settings, engine)
    sync_testboxes(lab)
    with running_smtpd(settings):
        yield Brain(settings=settings, engine=engine, lab=lab, fake=FakeLab(engine=engine, artifacts=settings.artifacts, repo=repo), repo=repo)


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
    assert {row["verdict"] for row in brain.facts("c")["rows"] if row["class"] == "benchmark"} == {"same"}
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
    made = commits(brain, *plain(3), FakeCommit(kind="broken"), *plain(2), FakeCommit(speed=90), *plain(1), FakeCommit(kind="unbootable"), *plain(4))
    brain.watch(base)
    brain.run()
    assert brain.facts("b")["culprit"]["commit"] == made[6]
    assert len(brain.mails) == 1


def test_a_culprit_next_to_an_unbuildable_commit_is_one_of_a_set(brain: Brain) -> None:
    base = base_of(brain)
    made = commits(brain, *plain(3), FakeCommit(kind="broken", speed=90), FakeCommit(), *plain(6))
    brain.watch(base)
    brain.run()
    found = brain.facts("b")
    assert found["status"] == "credible_set"
    assert {made[3], made[4]} <= {member["commit"] for member in found["members"]}
    assert brain.mails == []


def test_identical_images_are_measured_once(brain: Brain) -> None:
    base = base_of(brain)
    made = commits(brain, FakeCommit(kind="comment"))
    brain.watch(base)
    brain.run()
    boots = [entry for entry in brain.fake.done if entry[0] == "boot"]
    assert len(boots) == brain.lab.policies.watch_boots
    assert len({k for _, _, k in boots}) == len(boots)
    (row,) = [row for row in brain.facts("c")["rows"] if row["headline"]]
    assert row["verdict"] == "same"
    assert "identical" in row["reason"]
    assert made


def test_trouble_of_the_lab_is_retried_and_never_a_vote(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swingbot.service.dispatch_orders.patience", lambda made: 0.0)
    base = base_of(brain)
    made = commits(brain, *plain(3), FakeCommit(speed=90), *plain(2))
    brain.watch(base)
    brain.fake.infra = 2
    brain.run()
    assert brain.facts("b")["culprit"]["commit"] == made[3]


def test_a_lab_that_stays_broken_fails_the_comparison_with_its_reason(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swingbot.service.dispatch_orders.patience", lambda made: 0.0)
    base = base_of(brain)
    commits(brain, *plain(1))
    brain.fake.infra = 10_000
    brain.watch(base)
    brain.run()
    comparison = brain.facts("c")
    assert comparison["status"] == "failed"
    assert "the disk is full" in comparison["reason"]
    assert brain.mails == []


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
    wish: dict[str, Any] = {"tree_name": "fake", "base": base, "head": made[1], "job_files": [], "overrides": {}, "testboxes": [], "boots": 2, "patches": []}
    first = request_comparison(brain.lab, **wish)
    assert request_comparison(brain.lab, **wish) == first
    brain.run()
    assert request_comparison(brain.lab, **wish) == first


def test_a_bisection_by_hand_finds_an_improvement_too_and_sends_nothing(brain: Brain) -> None:
    base = base_of(brain)
    made = commits(brain, *plain(2), FakeCommit(speed=110), *plain(3))
    brain.watch(base)
    number = start_bisection(brain.lab, tree_name="fake", good=made[-1], bad=base, job_files=[], overrides={}, metric=METRIC, testbox=None)
    brain.run()
    found = brain.facts("b", number)
    assert found["culprit"]["commit"] == made[2]
    assert found["change_pct"] == pytest.approx(10, abs=0.3)
    assert brain.mails == []


def test_a_cancelled_comparison_takes_its_orders_with_it(brain: Brain) -> None:
    base = base_of(brain)
    made = commits(brain, *plain(2))
    brain.watch(base)
    brain.run()
    number = request_comparison(brain.lab, tree_name="fake", base=base, head=made[0], job_files=[], overrides={}, testboxes=[], boots=4, patches=[])
    tick(brain.lab)
    assert cancel_comparison(brain.lab, number)
    tick(brain.lab)
    tick(brain.lab)
    with brain.lab.transaction("look") as store:
        assert store.open_orders() == []
        assert store.leased() == set()
        assert store.attempts("running") == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"url": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({"branch": "nosuch"}, "nosuch"),
        ({"base": "v9.99"}, "v9.99"),
        ({"testboxes": ["toaster"]}, "toaster"),
        ({"kconfig": "nosuch"}, "nosuch"),
        ({"job_files": [JobFile(name="bad.yaml", text="page-fault:\n  nr_tusk: 3\n")]}, "bad.yaml:2"),
        ({"job_files": []}, "--job"),
    ],
)
def test_a_tree_that_makes_no_sense_is_refused_in_one_sentence(brain: Brain, change: dict[str, Any], told: str) -> None:
    base = base_of(brain)
    with pytest.raises(RequestError, match=".") as refused:
        brain.watch(**{"base": base, **change})
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert brain.count("tree") == 0
