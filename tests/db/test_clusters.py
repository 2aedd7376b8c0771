"""Clusters in the database: an attempt leases all nodes of its cluster or none, without
deadlock."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.core.model.records import JobFile
from swingbot.core.model.testbox_state import LeaseHeld, LeaseRefused
from swingbot.service.lab.set_testboxes import drain, quarantine, resume
from swingbot.service.lab.watch_testboxes import SETTLE_SECONDS
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.service.ports import RequestError
from swingbot.service.tick import tick
from tests.db.racks import attempt_of, environment, facts_of, fail, lapse, rows, state, turn
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import JOB
from tests.fakes.mail import running_smtpd
from tests.table_requests import compare

IRON = """\
name: {name}
tbox_group: {name}
driver: ssh
model: iron
nr_cpu: 1
memory_mb: 1024
ssh: {{host: {name}.example, key: /k, known_hosts: /h, enter: kexec, console: {{device: /dev/ttyS0}}, power: none}}
"""
CLUSTER = """\
name: {name}
tbox_group: cs-pair
driver: cluster
model: two of iron
nr_cpu: 1
memory_mb: 1024
cluster:
  nodes: {{server: {server}, client: {client}}}
  wire: {{cards: {{server: eth1, client: eth1}}}}
"""
WIRE = JobFile(name="wire.yaml", text="cluster: cs-pair\nnetperf:\n  test: TCP_RR\n  runtime: 1s\n")


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    """Testboxes a and b, and two clusters of them that differ in who serves."""
    variables = environment(tmp_path, db_url)
    testboxes = tmp_path / "workers" / "testboxes"
    for name in ("a", "b"):
        (testboxes / f"{name}.yaml").write_text(IRON.format(name=name))
    for name, server, client in (("cs-ab", "a", "b"), ("cs-ba", "b", "a")):
        (testboxes / f"{name}.yaml").write_text(
            CLUSTER.format(name=name, server=server, client=client)
        )
    settings = load(environ=variables)
    make_fakelinux(tmp_path / "linux", [FakeCommit()])
    with running_smtpd(settings):
        made = make_brain(settings, engine, tmp_path / "linux")
        clock = dataclasses.replace(
            made.lab.clock, listening=lambda: SETTLE_SECONDS, awake=lambda: 1e9
        )
        yield dataclasses.replace(made, lab=dataclasses.replace(made.lab, clock=clock))


def asked(brain: Brain, *testboxes: str, boots: int = 1, job: JobFile = WIRE) -> None:
    """A comparison of the tip with its parent, whose kernels are built."""
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    if not rows(brain, "SELECT FROM tree"):
        brain.watch(base, testboxes=["vm-icount"])
    compare(brain.lab, f"{base}~1", base, job_files=[job], testboxes=testboxes, boots=boots)


def at_work(brain: Brain) -> dict[str, int]:
    """The attempt that each leased testbox works for."""
    return {
        row["testbox"]: row["attempt"]
        for row in rows(brain, "SELECT testbox, attempt FROM lease ORDER BY testbox")
    }


def came_home(brain: Brain, name: str) -> str:
    """The change of a node's state when its cluster gave it back."""
    events = [
        event
        for event in facts_of(brain, name)["events"]
        if event["why"].startswith("given back by cluster cs-ab")
    ]
    return " ".join(f"{event['was']} -> {event['state']}" for event in events)


def built(brain: Brain) -> None:
    """Both kernels."""
    asked(brain, "vm-icount", job=JOB)
    brain.run()


def test_an_attempt_on_a_cluster_has_all_three_until_it_ends(brain: Brain) -> None:
    built(brain)
    asked(brain, "cs-ab")
    turn(brain)
    number, attempts = attempt_of(brain, "cs-ab"), WorkerRequests(brain.lab.transaction)
    assert at_work(brain) == {"a": number, "b": number, "cs-ab": number}
    assert isinstance(attempts.hold(number, "lab1"), LeaseHeld)
    assert {row["holder"] for row in rows(brain, "SELECT holder FROM lease")} == {"lab1"}
    assert isinstance(refused := attempts.hold(number, "lab2"), LeaseRefused)
    assert refused.why.startswith("testbox cs-ab is held by controller lab1")
    assert attempts.tell_phase(number, "running", "server a: the job runs")
    assert [state(brain, name) for name in ("cs-ab", "a", "b")] == ["running"] * 3
    fail(brain)
    assert number not in at_work(brain).values()
    assert [facts_of(brain, name)["now"]["failures"] for name in ("cs-ab", "a", "b")] == [1, 0, 0]
    for name in ("a", "b"):
        assert came_home(brain, name) == "running -> idle"


def test_the_node_that_is_lost_is_named_and_the_other_is_home(brain: Brain) -> None:
    built(brain)
    asked(brain, "cs-ab")
    turn(brain)
    assert WorkerRequests(brain.lab.transaction).tell_phase(
        attempt_of(brain, "cs-ab"), "lost", "client b: it does not come back"
    )
    assert [state(brain, name) for name in ("cs-ab", "a", "b")] == ["lost", "leased", "lost"]
    fail(brain)
    assert (came_home(brain, "a"), came_home(brain, "b")) == ("leased -> idle", "lost -> lost")


def test_clusters_of_the_same_testboxes_and_the_testboxes_themselves_take_turns_to_the_end(
    brain: Brain,
) -> None:
    """Two clusters need the same testboxes in opposite roles, and other orders need them alone.

    Each attempt leases every testbox that it needs, no lease is shared, and all attempts end.
    """
    built(brain)
    asked(brain, "cs-ab", "cs-ba", boots=2)
    asked(brain, "a", "b", boots=3, job=JOB)
    seen: set[tuple[str, ...]] = set()
    for _ in range(100):
        tick(brain.lab)
        working = at_work(brain)
        for attempt in set(working.values()):
            seen.add(tuple(name for name in working if working[name] == attempt))
        brain.fake.work()
        if not rows(brain, "SELECT FROM orders WHERE state IN ('waiting', 'ready', 'running')"):
            break
    else:
        raise AssertionError(
            f"somebody waits for ever: {rows(brain, 'SELECT testbox, state FROM orders')}"
        )
    assert seen == {("a",), ("b",), ("a", "b", "cs-ab"), ("a", "b", "cs-ba")}


@pytest.mark.parametrize("take_out", [drain, quarantine])
def test_a_cluster_does_not_work_while_one_of_its_testboxes_may_not(
    brain: Brain, take_out: object
) -> None:
    built(brain)
    take_out(brain.lab.transaction, "b", "new fans")  # type: ignore[operator]
    asked(brain, "cs-ab")
    turn(brain, 2)
    assert at_work(brain) == {}
    resume(brain.lab.transaction, "b")
    turn(brain)
    assert set(at_work(brain)) == {"a", "b", "cs-ab"}


def test_a_controller_that_falls_silent_loses_its_cluster_once_and_frees_both_testboxes(
    brain: Brain,
) -> None:
    built(brain)
    asked(brain, "cs-ab")
    turn(brain)
    attempts = WorkerRequests(brain.lab.transaction)
    assert isinstance(attempts.hold(attempt_of(brain, "cs-ab"), "lab1"), LeaseHeld)
    for name in ("a", "b", "cs-ab"):
        lapse(brain, name)
    number = attempt_of(brain, "cs-ab")
    turn(brain)
    assert number not in at_work(brain).values()
    assert facts_of(brain, "cs-ab")["now"]["failures"] == 1
    assert [
        event["state"]
        for event in facts_of(brain, "cs-ab")["events"]
        if "did not report for" in event["why"]
    ] == ["lost"]
    assert came_home(brain, "a") == came_home(brain, "b") == "leased -> idle"


def test_a_job_for_one_testbox_is_refused_for_a_cluster_when_it_is_asked_for(brain: Brain) -> None:
    built(brain)
    with pytest.raises(
        RequestError, match="testbox cs-ab is a cluster of two: set cluster: cs-pair"
    ):
        asked(brain, "cs-ab", job=dataclasses.replace(WIRE, text=WIRE.text.partition("\n")[2]))
