"""A small real service for tests: PostgreSQL, exchange, Buildbot master and workers as processes
that a test may kill.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from swingbot.adapters import artifacts
from swingbot.app import embedded, master, supervision
from swingbot.app.settings import DbSection, PathSection, Settings, WebSection
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.web.workers import exchange
from swingbot_db import migrate
from swingbot_db.engine import make_engine
from swingbot_db.store import patient_transactions
from tests.buildbot.ports import free_ports
from tests.postgres import Server

_numbers = itertools.count(1)


def eventually(what: str, true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until `true()` is truthy and return it."""
    end = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
    return value


def settings_for(root: Path, url: str) -> Settings:
    (root / "workers" / "testboxes").mkdir(parents=True, exist_ok=True)
    return Settings(
        paths=PathSection(
            state=str(root / "state"), cache=str(root / "cache"), workers=str(root / "workers")
        ),
        web=WebSection(port=free_ports(4)),
        db=DbSection(url=url),
    )


class Lab:
    """One service with a database of its own. Processes are started by name and can be killed."""

    def __init__(self, root: Path, url: str, testboxes: Mapping[str, str] | None = None) -> None:
        self.settings = settings_for(root, url)
        for name, text in (testboxes or {}).items():
            (root / "workers" / "testboxes" / f"{name}.yaml").write_text(text)
        self.root = root
        embedded.prepare_directories(self.settings)
        self.engine = make_engine(url)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a program of the embedded service by its name, with more environment."""
        program = next(one for one in supervision.programs(self.settings) if one.name == name)
        env = supervision.environment(self.settings, os.environ) | more
        with (self.settings.log / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                program.argv,
                cwd=program.directory,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        return self.processes[name]

    def start_all(self) -> None:
        self.start("buildbot-master")
        for name in self.worker_programs():
            self.start(name)
        # a busy machine has been seen to need 50 s for the master alone
        eventually("workers are attached", self.attached, 240)

    def worker_programs(self) -> list[str]:
        return [
            one.name
            for one in supervision.programs(self.settings)
            if one.name.startswith("worker-")
        ]

    def attached(self) -> bool:
        return set(self.worker_programs()) <= {
            f"worker-{name}" for name in embedded.attached_workers(self.settings) or set()
        }

    def kill(self, name: str, number: int = signal.SIGKILL, seconds: float = 30.0) -> None:
        process = self.processes.pop(name)
        process.send_signal(number)
        process.wait(seconds)

    def stop(self) -> None:
        for log in self.settings.log.glob("*.log"):  # pytest shows it if the test failed
            print(f"== {log.name}", *log.read_text(errors="replace").splitlines()[-30:], sep="\n")
        for name in list(self.processes):
            self.kill(name)
        marker = str(self.settings.state)
        for one in psutil.process_iter():
            try:
                if marker in " ".join(one.cmdline()):
                    one.kill()
            except psutil.Error:
                continue
        self.engine.dispose()

    def sql(self, text: str, **parameters: Any) -> list[Any]:
        with self.engine.begin() as conn:
            result = conn.execute(sa.text(text), parameters)
            return list(result) if result.returns_rows else []

    def log(self, name: str) -> str:
        return (self.settings.log / f"{name}.log").read_text(errors="replace")

    @contextmanager
    def exchange(self) -> Iterator[None]:
        """The web service's exchange, in a thread of this process."""
        store = artifacts.ArtifactDirectory(self.settings.artifacts)
        requests = WorkerRequests(patient_transactions(self.engine))
        routes = [
            *exchange.routes(store, requests, artifacts.secret(self.settings.secret_file)),
            Route("/healthz", lambda request: PlainTextResponse("ok\n")),
        ]
        server = uvicorn.Server(
            uvicorn.Config(
                Starlette(routes=routes),
                host="127.0.0.1",
                port=self.settings.web.port,
                log_level="warning",
            )
        )
        thread = threading.Thread(target=server.run)
        thread.start()
        eventually("the exchange answers", lambda: server.started)
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(20)


MakeLab = Callable[..., Lab]


@contextmanager
def labs(pg: Server, root: Path) -> Iterator[MakeLab]:
    """Makes labs, each with a copy of a database that has both schemas."""
    prepared = pg.template("prepared", lambda url: _prepare(root / "template", url))
    made: list[Lab] = []

    def make(**how: dict[str, str]) -> Lab:
        name = f"lab_{os.getpid()}_{next(_numbers)}"
        made.append(Lab(root / name, pg.create(name, prepared), **how))
        return made[-1]

    yield make
    for lab in made:
        lab.stop()
        pg.drop(lab.root.name)


def _prepare(root: Path, url: str) -> None:
    settings = settings_for(root, url)
    engine = make_engine(url)
    migrate.upgrade(engine)
    engine.dispose()
    embedded.prepare_directories(settings)
    master.upgrade_as_owner(settings, print)
