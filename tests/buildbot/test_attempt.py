from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.buildbot.lab import eventually
from tests.buildbot.stub_testbox import NAME, StubTestbox

IMAGE = b"not a kernel, but the driver does not look"


class Worker:
    """One worker's directories, and the command as Buildbot starts it."""

    def __init__(self, root: Path) -> None:
        self.testbox = StubTestbox(root / "box")
        self.state = root / "state"
        (root / "workers" / "testboxes").mkdir(parents=True)
        (root / "workers" / "testboxes" / f"{NAME}.yaml").write_text(self.testbox.yaml)
        self.env = os.environ | {
            "SWINGBOT_PATHS_CACHE": str(root / "cache"),
            "SWINGBOT_PATHS_WORKERS": str(root / "workers"),
        }
        self.order_file = root / "order.json"
        image = root / "bzImage"
        image.write_bytes(IMAGE)
        jobs = [{"name": "hackbench-1", "program": "hackbench", "params": {}, "runs": 1}]
        kernel = {
            "build_key": "a" * 64,
            "image": str(image),
            "image_sha256": hashlib.sha256(IMAGE).hexdigest(),
        }
        ids = {"version": 1, "kind": "boot", "order": "o1", "attempt": "a1"}
        self.order: dict[str, Any] = ids | {
            "kernel": kernel,
            "testbox": NAME,
            "k": 0,
            "unit_jobs": jobs,
        }
        self.running: list[subprocess.Popen[str]] = []

    def attempt(self) -> subprocess.Popen[str]:
        self.order_file.write_text(json.dumps(self.order))
        argv = [
            sys.executable,
            "-m",
            "swingbot_worker.attempt",
            "--order",
            str(self.order_file),
            "--state",
            str(self.state),
        ]
        self.running.append(
            subprocess.Popen(
                argv,
                env=self.env,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )
        return self.running[-1]

    @property
    def place(self) -> Path:
        return self.state / "attempts" / "a1"

    def outcome(self) -> Any:
        return json.loads((self.place / "outcome.json").read_text())

    def executor(self) -> psutil.Process:
        for one in psutil.process_iter():
            try:
                if str(self.place) in one.cmdline():
                    return one
            except psutil.Error:
                continue
        raise AssertionError("no executor")

    def stop(self) -> None:
        for one in self.running:
            one.kill()
            one.communicate()
        with suppress(AssertionError):
            self.executor().kill()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path)
    yield worker
    worker.stop()


class Leasing(BaseHTTPRequestHandler):
    """A service that leases the testbox to whoever asks, for five minutes."""

    def do_GET(self) -> None:
        lease = {"fence": 1, "seconds": 300.0}
        body = json.dumps({"attempt": "a1", "wanted": True, "lease": lease}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    text, _ = process.communicate(timeout=60)
    return process.returncode, text


def test_killing_the_command_does_not_kill_the_work_and_the_next_command_attaches(
    worker: Worker,
) -> None:
    first = worker.attempt()
    eventually("the boot has begun", lambda: worker.testbox.starts() == 1)
    first.kill()
    first.wait()
    second = worker.attempt()
    worker.testbox.let_go()
    rc, text = finish(second)
    assert (rc, worker.testbox.starts()) == (0, 1), text
    assert worker.outcome()["status"] == "up"
    assert "a1: up in" in text
    assert finish(worker.attempt())[0] == 0  # and once more after the end
    assert worker.testbox.starts() == 1


def test_two_commands_at_once_start_the_work_once(worker: Worker) -> None:
    commands = [worker.attempt() for _ in range(3)]
    eventually("the boot has begun", lambda: worker.testbox.starts() >= 1)
    worker.testbox.let_go()
    assert [finish(one)[0] for one in commands] == [0, 0, 0]
    assert worker.testbox.starts() == 1


def test_an_executor_that_is_killed_is_a_fault_of_the_lab_and_never_begins_again(
    worker: Worker,
) -> None:
    command = worker.attempt()
    eventually("the boot has begun", lambda: worker.testbox.starts() == 1)
    worker.executor().send_signal(signal.SIGKILL)
    rc, text = finish(command)
    assert rc == 0, text
    assert worker.outcome()["status"] == "infra"
    assert "executor died" in worker.outcome()["reason"]
    assert worker.testbox.starts() == 1


def test_nothing_is_booted_before_the_service_has_leased_the_testbox(worker: Worker) -> None:
    worker.order["exchange"] = {"url": "http://127.0.0.1:9", "token": "a1." + "0" * 64}
    worker.testbox.let_go()
    command = worker.attempt()
    log = worker.place / "executor.log"
    eventually(
        "it says what it waits for",
        lambda: log.exists() and "nothing is booted without a lease" in log.read_text(),
    )
    assert (command.poll(), worker.testbox.starts()) == (None, 0)


def test_results_are_kept_and_offered_until_the_service_is_back(
    worker: Worker, tmp_path: Path
) -> None:
    """The service leases the testbox and goes away: the command waits, the files stay, and nothing
    is marked as delivered.
    """
    with ThreadingHTTPServer(("127.0.0.1", 0), Leasing) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{service.server_port}"
        worker.order["exchange"] = {"url": url, "token": "a1." + "0" * 64}
        command = worker.attempt()
        eventually("the boot has begun", lambda: worker.testbox.starts() == 1)
        service.shutdown()
    worker.testbox.let_go()
    eventually("the work is done", lambda: (worker.place / "outcome.json").exists())
    eventually(
        "it says what it waits for",
        lambda: "the service is unavailable" in (worker.place / "executor.log").read_text(),
    )
    assert command.poll() is None
    assert (worker.place / "out" / "results.tar").exists()
    assert not (worker.place / "delivered").exists()


def test_an_order_that_is_no_order_is_refused_in_one_sentence(worker: Worker) -> None:
    worker.order["kind"] = "dance"
    rc, text = finish(worker.attempt())
    assert rc == 2
    assert "kind" in text
    assert "Traceback" not in text


def test_a_state_directory_that_cannot_be_written_is_said(worker: Worker) -> None:
    worker.state.write_text("a file")
    rc, text = finish(worker.attempt())
    assert rc == 1
    assert "needs a writable directory" in text
    assert "Traceback" not in text
