"""A container engine of the test's own: Debian's podman behind a socket that docker-compose speaks
to.

Nothing of the host's own engine is touched: storage, networks, settings and socket lie in
directories of the test. What can be made again (images) is kept in the cache.
Podman's health checks need systemd, so a thread runs them instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from swingbot_worker.rootfs.debian import system_sources
from tests.lab import made_root

ROOT: Final = Path(__file__).resolve().parents[3]
BASE: Final = "localhost/swingbot-test-base"
_SUITE: Final = "bookworm"
_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
# Without limits of its own podman asks for more than a host may give; crun refuses cgroups of both
# versions at once.
_CONTAINERS_CONF: Final = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=10000:10000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_config_dir = "{networks}"
"""


class Engine:
    """`keep`: where images stay; `place`: everything else, and gone afterwards."""

    def __init__(self, keep: Path, place: Path, project: str, variables: Mapping[str, str]) -> None:
        self._keep, self._place, self.project = keep, place, project
        # Short, and the same each time: podman's storage remembers it, and refuses another one.
        self._run = (
            Path(tempfile.gettempdir())
            / f"swingbot-{hashlib.sha256(str(keep).encode()).hexdigest()[:8]}"
        )
        keep.mkdir(parents=True, exist_ok=True)
        place.mkdir(parents=True, exist_ok=True)
        (place / "containers.conf").write_text(_CONTAINERS_CONF.format(networks=keep / "networks"))
        self.files = ["docker-compose.yml"]  # those that users get
        self._env_file = place / "env"
        self._env_file.write_text("")
        self.set({"COMPOSE_PROJECT_NAME": project, **variables})
        self._driver = _driver(keep)
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SWINGBOT_", "COMPOSE_", "DOCKER_"))
        } | {
            "CONTAINERS_CONF": str(place / "containers.conf"),
            "DOCKER_HOST": f"unix://{place}/socket",
            "COMPOSE_HTTP_TIMEOUT": "600",
            "COMPOSE_IGNORE_ORPHANS": "1",
            "TMPDIR": str(place),
        }
        self._service: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._checks = threading.Thread(target=self._check_health, daemon=True)

    def set(self, variables: Mapping[str, str]) -> None:
        """More lines of `.env`."""
        with self._env_file.open("a") as file:
            file.write("".join(f"{name}={value}\n" for name, value in variables.items()))

    def start(self) -> None:
        argv = self._podman("system", "service", "--time=0", self._environment["DOCKER_HOST"])
        with (self._place / "engine.log").open("wb") as log:
            self._service = subprocess.Popen(
                argv,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until("the engine answers", lambda: (self._place / "socket").exists(), seconds=30)
        self._checks.start()
        self._clear()  # what a test that was killed has left

    def close(self) -> None:
        """Nothing is left but images: containers, networks, volumes and the engine go."""
        self._over.set()
        if self._checks.is_alive():
            self._checks.join(timeout=120)
        self._clear()
        if self._service is not None:
            self._service.terminate()
            self._service.wait(timeout=30)

    def _clear(self) -> None:
        self.podman("rm", "--all", "--force", "--time=1", check=False)
        self.podman("volume", "prune", "--force", check=False)
        self.podman("network", "prune", "--force", check=False)
        self.forget_names()

    def podman(
        self, *words: str, check: bool = True, seconds: float = 120, text: str | None = None
    ) -> str:
        return _run(
            self._podman(*words), self._environment, check=check, seconds=seconds, text=text
        )

    def compose(
        self, *words: str, check: bool = True, seconds: float = 300, text: str | None = None
    ) -> str:
        """docker-compose with `files` and the test's own override."""
        files = [
            word
            for name in (*self.files, "tests/lab/compose/override.yml")
            for word in ("--file", str(ROOT / name))
        ]
        argv = [
            "docker-compose",
            "--env-file",
            str(self._env_file),
            "--project-directory",
            str(ROOT),
            *files,
            *words,
        ]
        return _run(argv, self._environment, check=check, seconds=seconds, text=text)

    def make_base(self) -> None:
        """Debian as mmdebstrap makes it, with what this host needs to reach package registries:
        its certificates and pip's settings.
        """
        if BASE in self.podman("images", "--format", "{{.Repository}}").split():
            return
        tar = self._place / "base.tar"
        sources = [
            f"deb {source.uri} {source.suite} main"
            for source in system_sources()
            if "main" in source.components
        ]
        settings = self._place / "pip.conf"
        settings.write_text(
            "[global]\ntimeout = 180\n"
            + (f"cert = {_CERTIFICATES}\n" if _CERTIFICATES.exists() else "")
        )
        hooks = ["--customize-hook=copy-in " + f"{settings} /etc"]
        if _CERTIFICATES.exists():
            hooks.append(f"--customize-hook=copy-in {_CERTIFICATES} {_CERTIFICATES.parent}")
        argv = [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            "--include=ca-certificates",
            *hooks,
            _SUITE,
            str(tar),
            *sources,
        ]
        _run(made_root.apart(argv), self._environment, check=True, seconds=900)
        self.podman("import", str(tar), BASE, seconds=300)
        tar.unlink()

    def forget_names(self) -> None:
        """Podman 4.3 keeps names of containers that were killed, under the addresses of a network
        that is gone, and then answers for none of the new one.
        """
        for file in Path("/run/containers/networks/aardvark-dns").glob(f"{self.project}_*"):
            file.unlink()

    # -- the project's containers

    def container(self, service: str) -> str:
        """Name of the one container of a service, as docker-compose 1.29 gives it."""
        return f"{self.project}_{service}_1"

    def inspect(self, *services: str) -> list[dict[str, Any]]:
        """All that podman knows of the container of each."""
        found: list[dict[str, Any]] = json.loads(
            self.podman("inspect", "--type=container", *map(self.container, services))
        )
        return found

    def is_well(self, service: str) -> bool:
        """Whether its health check passes now.

        What was noted of the last one may be from before a kill.
        """
        return (
            _tried(
                self._podman("healthcheck", "run", self.container(service)), self._environment, 60
            ).returncode
            == 0
        )

    def pid(self, service: str) -> int:
        """Its first process, as the host sees it; 0 if it does not run."""
        said = self.podman(
            "inspect", "--format={{.State.Pid}}", self.container(service), check=False
        ).strip()
        return int(said or 0)

    def exec(
        self,
        service: str,
        *words: str,
        check: bool = True,
        seconds: float = 120,
        text: str | None = None,
    ) -> str:
        """By podman itself, which is ten times as quick as docker-compose."""
        return self.podman(
            "exec",
            "--interactive",
            self.container(service),
            *words,
            check=check,
            seconds=seconds,
            text=text,
        )

    def logs(self, *services: str) -> str:
        """The last words of each, for a test that has failed."""
        return "\n".join(
            f"-- {one}\n" + self.podman("logs", "--tail=30", self.container(one), check=False)
            for one in services
        )

    def _podman(self, *words: str) -> list[str]:
        return [
            "podman",
            "--root",
            str(self._keep / "storage"),
            "--runroot",
            str(self._run),
            "--storage-driver",
            self._driver,
            *words,
        ]

    def _check_health(self) -> None:
        """As often as a start needs.

        A container that is well is asked once a minute, for each question starts two programs.
        """
        asked: dict[str, float] = {}
        while not self._over.wait(3):
            for line in self.podman(
                "ps", "--format={{.Names}} {{.Status}}", check=False
            ).splitlines():
                name, _, status = line.partition(" ")
                if "(healthy)" not in status or time.monotonic() - asked.get(name, 0.0) > 60:
                    asked[name] = time.monotonic()
                    if not self._over.is_set():
                        with contextlib.suppress(subprocess.TimeoutExpired):
                            _tried(self._podman("healthcheck", "run", name), self._environment, 60)


def until(what: str, true: Callable[[], bool], seconds: float, pause: float = 1.0) -> float:
    """Wait for `true()`; says how long it took. Fails with `what` when `seconds` are over."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds, f"not within {seconds:.0f} s: {what}"
        time.sleep(pause)
    return time.monotonic() - began


def _driver(keep: Path) -> str:
    """overlay where the kernel lets us mount it there, else vfs, which copies every layer whole."""
    with tempfile.TemporaryDirectory(dir=keep, prefix=".trial-") as name:
        for part in ("lower", "upper", "work", "merged"):
            (Path(name) / part).mkdir()
        options = f"lowerdir={name}/lower,upperdir={name}/upper,workdir={name}/work"
        tried = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", options, f"{name}/merged"],
            capture_output=True,
        )
        if tried.returncode == 0:
            subprocess.run(["umount", f"{name}/merged"], check=True)
            shutil.rmtree(Path(name) / "work" / "work", ignore_errors=True)
    return "overlay" if tried.returncode == 0 else "vfs"


def _run(
    argv: list[str],
    environment: Mapping[str, str],
    *,
    check: bool,
    seconds: float,
    text: str | None = None,
) -> str:
    done = _tried(argv, environment, seconds, text)
    assert done.returncode == 0 or not check, (
        f"{' '.join(argv[-6:])}: exit status {done.returncode}\n{done.stdout[-3000:]}\n"
        f"{done.stderr[-3000:]}"
    )
    return done.stdout


def _tried(
    argv: list[str], environment: Mapping[str, str], seconds: float, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        env=dict(environment),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        input=text or "",
    )
