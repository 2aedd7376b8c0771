"""The embedded service as its users start and stop it.

One story in order, because each start takes seconds.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot.app import embedded, process
from swingbot.app.settings import PathSection, Settings, WebSection
from tests.buildbot.lab import eventually
from tests.buildbot.ports import free_ports
from tests.buildbot.stub_testbox import NAME, StubTestbox


class Service:
    """`swingbot up` with a state directory of its own and one stub testbox."""

    def __init__(self, root: Path, **environment: str) -> None:
        self.root, self.environment = root, environment
        testboxes = root / "workers" / "testboxes"
        testboxes.mkdir(parents=True)
        (testboxes / f"{NAME}.yaml").write_text(StubTestbox(root / "box").yaml)
        self.port = free_ports(4)
        self.settings = Settings(
            paths=PathSection(state=str(root / "state"), workers=str(root / "workers")),
            web=WebSection(port=self.port),
        )
        self.output = root / "up.log"
        self.started: list[subprocess.Popen[bytes]] = []

    def up(self) -> subprocess.Popen[bytes]:
        env = {
            name: value for name, value in os.environ.items() if not name.startswith("SWINGBOT_")
        }
        env |= {
            "SWINGBOT_PATHS_WORKERS": str(self.root / "workers"),
            "SWINGBOT_PATHS_CACHE": str(self.root / "cache"),
            "SWINGBOT_WATCH_TESTBOX": NAME,
            **self.environment,
        }
        argv = [
            sys.executable,
            "-m",
            "swingbot.app.cli",
            "up",
            "--state",
            str(self.settings.state),
            "--port",
            str(self.port),
        ]
        with self.output.open("wb") as output:
            up = subprocess.Popen(
                argv, stdout=output, stderr=output, env=env, start_new_session=True
            )
        self.started.append(up)
        return up

    def stop(self) -> None:
        """Whatever state it is in. `up` comes first: it starts its supervisor again."""
        for up in self.started:
            up.send_signal(signal.SIGKILL)
            up.wait()
        for one in process.members(self.settings.state):
            one.send_signal(signal.SIGCONT)
        process.stop_members(self.settings.state, 20)

    def up_and_healthy(self) -> subprocess.Popen[bytes]:
        started = self.up()
        eventually(
            "the service is up",
            lambda: "swingbot is up" in self.said() or started.poll() is not None,
            400,
        )
        assert started.poll() is None, self.said()
        return started

    def said(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    def pid(self, program: str) -> int:
        """0 while there is none."""
        return next(
            (
                one.pid
                for one in process.members(self.settings.state)
                if program in " ".join(one.cmdline())
            ),
            0,
        )

    def gone(self) -> bool:
        return not process.members(self.settings.state)


@pytest.fixture
def service(short_root: Path) -> Iterator[Service]:
    service = Service(Path(tempfile.mkdtemp(dir=short_root)))
    service.root.chmod(0o755)
    yield service
    print(service.said())
    service.stop()


def test_up_starts_survives_kills_refuses_a_second_one_and_stops_cleanly(service: Service) -> None:
    up = service.up_and_healthy()
    assert embedded.web_answers(service.settings)
    assert {"builder", f"testbox-{NAME}"} <= (embedded.attached_workers(service.settings) or set())

    second = service.settings.state.parent / "second.log"
    with second.open("wb") as output:
        argv = [
            sys.executable,
            "-m",
            "swingbot.app.cli",
            "up",
            "--state",
            str(service.settings.state),
            "--port",
            str(service.port),
        ]
        assert (
            subprocess.run(argv, stdout=output, stderr=output, timeout=60, check=False).returncode
            == 1
        )
    assert f"another swingbot (process {up.pid}) is using" in second.read_text()
    assert len(second.read_text().splitlines()) == 1

    postgres = service.pid("bin/postgres -D")
    os.kill(postgres, signal.SIGKILL)
    eventually(
        "PostgreSQL is back",
        lambda: (
            embedded.web_answers(service.settings)
            and service.pid("bin/postgres -D") not in (0, postgres)
        ),
    )
    eventually("it was reported", lambda: "postgres died and is being restarted" in service.said())

    up.kill()
    up.wait()
    up = service.up_and_healthy()

    up.send_signal(signal.SIGTERM)
    assert up.wait(60) == 0
    assert "swingbot has stopped" in service.said()
    eventually("nothing is left running", service.gone, 5)


def test_a_taken_port_is_one_sentence(service: Service) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", service.port + 1))
        listener.listen()
        assert service.up().wait(60) == 1
    assert (
        f"port {service.port + 1} of 127.0.0.1, needed for Buildbot's pages, is in use"
        in service.said()
    )
    assert len(service.said().splitlines()) == 1


def test_a_state_directory_that_cannot_be_made_is_one_sentence(service: Service) -> None:
    (service.root / "state").write_text("a file where a directory should be")
    service.settings = dataclasses.replace(
        service.settings,
        paths=dataclasses.replace(service.settings.paths, state=str(service.root / "state" / "x")),
    )
    assert service.up().wait(60) == 1
    assert str(service.root / "state") in service.said()
    assert len(service.said().splitlines()) == 1
