"""A lab in miniature: every part a process of its own, started by its public command,
each host a directory that knows nothing of the others.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

from swingbot_db.engine import make_engine
from tests.buildbot.lab import eventually
from tests.buildbot.ports import free_ports
from tests.buildbot.stub_testbox import NAME, StubTestbox
from tests.postgres import Server

TESTBOX = f"testbox-{NAME}"
KCONFIG = "CONFIG_64BIT=y\nCONFIG_SMP=y\n# CONFIG_SLUB is not set\n"
WORKER = [sys.executable, "-m", "swingbot_worker.cli"]
SWINGBOT = [sys.executable, "-m", "swingbot.app.cli"]


class Fleet:
    """The hosts `controller`, `builder` and `testbox-stub` under one root.

    Processes are started by name and can be killed.
    """

    def __init__(self, root: Path, pg: Server, database: str) -> None:
        self.root = root
        self.testbox = StubTestbox(root / "iron")
        self.port = free_ports(5)
        self.admin_url = pg.create(database)
        self.controller, self.config = root / "controller", root / "controller" / "swingbot.toml"
        for host in ("controller", "builder", TESTBOX):
            self._files(root / host)
        self.config.write_text(self._settings())
        (self.controller / "owner").write_text("password-of-the-owner\n")
        (self.controller / "service").write_text("password-of-the-service\n")
        self.engine = make_engine(self.admin_url)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def _files(self, host: Path) -> None:
        """What master and worker have to have alike, brought to each host by itself."""
        (host / "workers" / "testboxes").mkdir(parents=True)
        (host / "workers" / "testboxes" / f"{NAME}.yaml").write_text(self.testbox.yaml)
        (host / "workers" / "kconfig").mkdir()
        (host / "workers" / "kconfig" / "tiny.config").write_text(KCONFIG)

    def _settings(self) -> str:
        def as_(role: str) -> str:
            return (
                sa.make_url(self.admin_url).set(username=role).render_as_string(hide_password=False)
            )

        here = self.controller
        sections: dict[str, dict[str, Any]] = {
            "paths": {
                "state": f"{here}/state",
                "cache": f"{here}/cache",
                "workers": f"{here}/workers",
            },
            "db": {
                "url": as_("swingbot_service"),
                "password_file": f"{here}/service",
                "owner_url": as_("swingbot_owner"),
                "owner_password_file": f"{here}/owner",
            },
            "web": {"port": self.port},
            "buildbot": {
                "tls_certificate": f"{here}/tls/master.pem",
                "tls_key": f"{here}/tls/master.key",
                "secrets": f"{here}/secrets",
                "elsewhere": "*",
                "pages": "operator",
            },
            "git": {"port": self.port + 4, "url": f"git://127.0.0.1:{self.port + 4}/mirror.git"},
            "build": {"kconfig": "tiny"},
            "watch": {"testbox": NAME, "boots": 1},
            "testboxes": {"idle_aa_minutes": 0.0},
        }
        return "\n".join(
            f"[{name}]\n"
            + "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
            + "\n"
            for name, keys in sections.items()
        )

    def run(self, *words: str) -> str:
        """`swingbot WORDS` on the controller; its output."""
        argv = [*SWINGBOT, "--config", str(self.config), *words]
        done = subprocess.run(
            argv,
            env=self._env("controller"),
            cwd=self.controller,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def _env(self, host: str) -> dict[str, str]:
        place = self.root / host
        env = {"PATH": os.environ["PATH"], "HOME": str(place), "OPENBLAS_NUM_THREADS": "1"}
        if host != "controller":
            env |= {
                "SWINGBOT_PATHS_CACHE": f"{place}/cache",
                "SWINGBOT_PATHS_WORKERS": f"{place}/workers",
                "SWINGBOT_BUILD_JOBS": "2",
            }
        return env

    def start(self, part: str) -> None:
        """`swingbot PART` with nothing but its configuration file, or the worker PART on its own
        host.
        """
        if part in ("builder", TESTBOX):
            place = self.root / part
            argv = [
                *WORKER,
                "serve",
                part,
                "--master",
                f"127.0.0.1:{self.port + 2}",
                "--secret-file",
                "secret",
                "--tls-ca",
                "ca.pem",
                "--state",
                "state",
            ]
        else:
            place, argv = self.controller, [*SWINGBOT, "--config", str(self.config), part]
        with (place / f"{part}.log").open("ab") as log:
            env = self._env(part if part in ("builder", TESTBOX) else "controller")
            self.processes[part] = subprocess.Popen(
                argv, cwd=place, env=env, stdout=log, stderr=log, start_new_session=True
            )

    def log(self, part: str) -> str:
        place = self.root / part if part in ("builder", TESTBOX) else self.controller
        file = place / f"{part}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def kill(self, part: str, number: int = signal.SIGKILL, seconds: float = 60.0) -> int:
        process = self.processes.pop(part)
        process.send_signal(number)
        return process.wait(seconds)

    def bring(self, worker: str) -> None:
        """Carry the worker's secret and the CA to its host, as an operator does."""
        (self.root / worker / "secret").write_text(self.run("worker", "secret", worker))
        shutil.copy(self.controller / "tls" / "ca.pem", self.root / worker / "ca.pem")

    def ready(self, worker: str, times: int = 1) -> None:
        eventually(
            f"{worker} is attached", lambda: self.log(worker).count("worker is ready") >= times, 180
        )

    def sql(self, text: str, **parameters: Any) -> list[Any]:
        with self.engine.begin() as conn:
            return list(conn.execute(sa.text(text), parameters))

    def stop(self) -> None:
        for part in ("git", "web", "loop", "master", "builder", TESTBOX):
            # pytest shows it if the test failed
            print(f"== {part}", *self.log(part).splitlines()[-30:], sep="\n")
        for part in list(self.processes):
            self.kill(part)
        for one in psutil.process_iter():
            try:
                if str(self.root) in " ".join(one.cmdline()):
                    one.kill()
            except psutil.Error:
                continue
        self.engine.dispose()
