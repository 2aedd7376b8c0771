from __future__ import annotations

import hashlib
import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swingbot.adapters import artifacts
from swingbot.core.model.dispatch import token
from tests.buildbot.lab import Lab, MakeLab, eventually, labs
from tests.buildbot.rows import add_boot_order, add_build_order, attempt_row, dispatch_row
from tests.buildbot.stub_testbox import NAME, StubTestbox
from tests.postgres import OwnServer, Server

IMAGE = b"not a kernel, but the driver does not look"
TESTBOX_WORKER = f"worker-testbox-{NAME}"


Boxed = tuple[Lab, StubTestbox, int]


@pytest.fixture
def boxed(make_lab: MakeLab, tmp_path: Path) -> Boxed:
    return a_boxed(make_lab, tmp_path)


@pytest.fixture
def own_boxed(own_server: Server, short_root: Path, tmp_path: Path) -> Iterator[Boxed]:
    with labs(own_server, short_root / "own") as make_lab:
        yield a_boxed(make_lab, tmp_path)


def a_boxed(make_lab: MakeLab, tmp_path: Path) -> Boxed:
    """A lab with a stub testbox, its image in the artifact store, and one boot order handed out.

    Only its own worker is needed.
    """
    testbox = StubTestbox(tmp_path / "box")
    lab = make_lab(testboxes={NAME: testbox.yaml})
    image = hashlib.sha256(IMAGE).hexdigest()
    sink = artifacts.ArtifactDirectory(lab.settings.artifacts).sink(image)
    sink.write(IMAGE)
    sink.commit()
    return lab, testbox, add_boot_order(lab, NAME, image)


def api(lab: Lab, path: str) -> Any:
    with urllib.request.urlopen(
        f"http://127.0.0.1:{lab.settings.buildbot_www_port}/api/v2/{path}", timeout=20
    ) as answer:
        return json.load(answer)


def raw_logs(lab: Lab) -> str:
    """Everything that Buildbot shows of all steps."""
    steps = api(lab, "builds/1/steps")["steps"]
    texts = [json.dumps(steps), json.dumps(api(lab, "builds?property=*"))]
    for step in steps:
        for log in api(lab, f"steps/{step['stepid']}/logs")["logs"]:
            texts.append(json.dumps(api(lab, f"logs/{log['logid']}/contents")))
    return "\n".join(texts)


def wait_for_end(lab: Lab, attempt: int) -> None:
    eventually("the attempt has ended", lambda: attempt_row(lab, attempt).state == "ended")
    eventually("the dispatch is over", lambda: dispatch_row(lab, attempt).state == "over")


def place(lab: Lab, attempt: int) -> Path:
    """Where the worker of the stub testbox keeps an attempt."""
    return lab.settings.state / "workers" / f"testbox-{NAME}" / "state" / "attempts" / f"a{attempt}"


def buildsets(lab: Lab) -> int:
    return int(lab.sql("SELECT count(*) AS n FROM public.buildsets")[0].n)


def test_an_order_goes_out_and_its_outcome_comes_back(boxed: Boxed) -> None:
    lab, testbox, attempt = boxed
    testbox.let_go()
    with lab.exchange():
        lab.start_all()
        wait_for_end(lab, attempt)
    assert (dispatch_row(lab, attempt).result, testbox.starts()) == ("success", 1)
    assert attempt_row(lab, attempt).outcome["status"] == "up"
    assert artifacts.ArtifactDirectory(lab.settings.artifacts).has(
        attempt_row(lab, attempt).outcome["files"]["results.tar"]["sha256"]
    )
    assert token(artifacts.secret(lab.settings.secret_file), attempt) not in raw_logs(lab)
    assert f"a{attempt}: up in" in raw_logs(lab)
    for path, method in [
        ("builds/1", "stop"),
        ("builds/1", "rebuild"),
        ("forceschedulers/__Janitor_force", "force"),
    ]:
        assert control(lab, path, method) == 403


def control(lab: Lab, path: str, method: str) -> int:
    """Try to give Buildbot a command without having logged in; returns the HTTP status."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}).encode()
    url = f"http://127.0.0.1:{lab.settings.buildbot_www_port}/api/v2/{path}"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=20
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_master_killed_at_any_point_of_placing_places_once(
    boxed: Boxed,
) -> None:
    lab, testbox, attempt = boxed
    testbox.let_go()
    names = lab.root / "checkpoints"
    # Having read the dispatches (2), in its first life the master dies before it asks Buildbot;
    # then after that; then, having found the buildset, around its own commit.
    for crash_at in (3, 4, 3, 4):
        master = lab.start(
            "buildbot-master", SWINGBOT_CRASH_AT=str(crash_at), SWINGBOT_CRASH_LOG=str(names)
        )
        assert master.wait(90) == -signal.SIGKILL
    last = [name.split(" ", 1)[1] for name in names.read_text().splitlines()]
    assert [name for name in last if not name.startswith("open dispatches")] == [
        "dispatcher: before addBuildset",
        "dispatcher: before addBuildset",
        "dispatcher: after addBuildset",
        "dispatch placed: before commit",
        "dispatch placed: before commit",
        "dispatch placed: after commit",
    ]
    with lab.exchange():
        lab.start_all()
        wait_for_end(lab, attempt)
    assert (buildsets(lab), testbox.starts()) == (1, 1)


def test_a_worker_killed_in_mid_boot_is_replaced_and_the_boot_goes_on(
    boxed: Boxed,
) -> None:
    lab, testbox, attempt = boxed
    with lab.exchange():
        lab.start_all()
        eventually("the boot has begun", lambda: testbox.starts() == 1)
        lab.kill(TESTBOX_WORKER)
        lab.start(TESTBOX_WORKER)
        eventually("the request is tried again", lambda: dispatch_row(lab, attempt).bb_number == 2)
        testbox.let_go()
        wait_for_end(lab, attempt)
    assert (dispatch_row(lab, attempt).result, testbox.starts(), buildsets(lab)) == (
        "success",
        1,
        1,
    )
    assert attempt_row(lab, attempt).outcome["status"] == "up"


def test_a_master_stopped_in_mid_boot_does_not_lose_the_outcome(
    boxed: Boxed,
) -> None:
    lab, testbox, attempt = boxed
    with lab.exchange():
        lab.start_all()
        eventually("the boot has begun", lambda: testbox.starts() == 1)
        lab.kill("buildbot-master", signal.SIGTERM)
        testbox.let_go()
        eventually("the attempt has ended", lambda: attempt_row(lab, attempt).state == "ended")
        lab.start("buildbot-master")
        eventually("the dispatch is over", lambda: dispatch_row(lab, attempt).state == "over")
    assert (attempt_row(lab, attempt).outcome["status"], testbox.starts()) == ("up", 1)
    # Buildbot would have cancelled it; disconnected before the stop, it is asked for again and
    # attaches to what went on.
    assert (
        dispatch_row(lab, attempt).result,
        dispatch_row(lab, attempt).bb_number,
        buildsets(lab),
    ) == ("success", 2, 1)


def test_a_database_that_dies_in_mid_boot_costs_nothing_but_time(
    own_server: OwnServer, own_boxed: Boxed
) -> None:
    lab, testbox, attempt = own_boxed
    log = place(lab, attempt) / "executor.log"
    with lab.exchange():
        lab.start_all()
        eventually("the boot has begun", lambda: testbox.starts() == 1)
        own_server.kill()
        try:
            testbox.let_go()
            eventually(
                "the executor waits", lambda: "the service is unavailable" in log.read_text()
            )
        finally:
            own_server.start()
        wait_for_end(lab, attempt)
    assert (dispatch_row(lab, attempt).result, testbox.starts(), buildsets(lab)) == (
        "success",
        1,
        1,
    )
    assert attempt_row(lab, attempt).outcome["status"] == "up"


def test_a_cancelled_order_stops_its_build_and_its_executor(
    boxed: Boxed,
) -> None:
    lab, testbox, attempt = boxed
    with lab.exchange():
        lab.start_all()
        eventually("the boot has begun", lambda: testbox.starts() == 1)
        lab.sql(
            (
                "UPDATE orders SET state = 'cancelled', ended_at = now() WHERE id = (SELECT "
                "order_id"
                " FROM attempt WHERE id = :a)"
            ),
            a=attempt,
        )
        eventually("the dispatch is over", lambda: dispatch_row(lab, attempt).state == "over")
        outcome = place(lab, attempt) / "outcome.json"
        eventually("the executor gave up", outcome.exists)
    assert dispatch_row(lab, attempt).result == "cancelled"
    assert json.loads(outcome.read_text())["status"] == "infra"


def test_a_dispatch_of_a_cancelled_order_that_was_not_placed_is_over_at_once(lab: Lab) -> None:
    attempt = add_build_order(lab)
    lab.sql("UPDATE orders SET state = 'cancelled', ended_at = now()")
    lab.start("buildbot-master")
    eventually("the dispatch is over", lambda: dispatch_row(lab, attempt).state == "over")
    assert (dispatch_row(lab, attempt).result, buildsets(lab)) == ("cancelled", 0)
