"""Bare-metal testboxes that are only played (tests/fakes/played_testbox.py),
one alone and two with a wire, so that each boot takes seconds.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from swingbot_worker.site import Site
from swingbot_worker.testbox.fence import NO_FENCE, Fence
from swingbot_worker.testbox.ssh import guest, power_switch, session
from tests.contract.labs import PROGRAMS, ROOT, Lab, a_job, programs_in
from tests.fakes import played_testbox
from tests.fakes.played_testbox import World

PROGRAM = [sys.executable, played_testbox.__file__]
OUT = ["booting", "running", "returning", "idle"]


def hasten(monkeypatch: pytest.MonkeyPatch, folder: Path, quiet_seconds: float) -> None:
    """Let take seconds what takes minutes on a real testbox, and find the SSH client of the one in
    `folder`.
    """
    monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    for name, seconds in (
        ("LOOK_SECONDS", 0.05),
        ("KNOCK_SECONDS", 0.1),
        ("QUIET_SECONDS", quiet_seconds),
        ("LEAVE_SECONDS", 2.0),
    ):
        monkeypatch.setattr(session, name, seconds)
    monkeypatch.setattr(guest, "BEAT_SECONDS", quiet_seconds / 6)  # as 15 of 90
    monkeypatch.setattr(power_switch, "OFF_SECONDS", 0.0)


class Testbox:
    """A played testbox and the site of its controller."""

    def __init__(self, folder: Path, behaves: str, **ssh: Any) -> None:
        self.world: World = played_testbox.new(folder / "world", behaves)
        (folder / "workers" / "testboxes").mkdir(parents=True)
        (folder / "workers" / "rootfs").symlink_to(ROOT / "workers" / "rootfs")
        (folder / "image").write_bytes(b"a kernel")
        (folder / "key").touch(mode=0o600)
        (folder / "known").touch()
        (folder / "bin").mkdir()
        shim = folder / "bin" / "ssh"
        words = shlex.join([*PROGRAM, "ssh", str(self.world.folder)])
        shim.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        shim.chmod(0o755)
        switches = {
            name: [*PROGRAM, "power", str(self.world.folder), name]
            for name in ("on", "off", "cycle", "status")
        }
        how = {
            "host": "played",
            "key": f"{folder}/key",
            "known_hosts": f"{folder}/known",
            "enter": "kexec",
            "power": switches,
            "panic_seconds": 1,
        }
        how |= {
            "console": {"command": ["tail", "-n", "+1", "-f", f"{self.world.folder}/console"]},
            "return_seconds": 8,
            "idle_release": "6.1.0-*",
            **ssh,
        }
        testbox: dict[str, Any] = {
            "name": "played",
            "tbox_group": "g",
            "driver": "ssh",
            "model": "played",
            "nr_cpu": 1,
            "memory_mb": 64,
            "ssh": how,
        }
        self.folder, self._file = folder, testbox
        self.describe()
        site = Site(
            cache=folder / "cache",
            workers=folder / "workers",
            jobs=programs_in(folder / "jobs"),
            benchmarks=None,
            make_jobs=1,
        )
        self.lab = Lab(site=site, testbox="played", image=folder / "image", out=folder / "out")

    def describe(self, **ssh: Any) -> None:
        """Write its file again, with these keys of `ssh`."""
        self._file["ssh"] |= ssh
        path = self.folder / "workers" / "testboxes" / "played.yaml"
        path.write_text(json.dumps(self._file))

    def boot(self, fence: Fence = NO_FENCE) -> dict[str, Any]:
        return self.lab.boot([a_job("prints", word="7")], k=0, fence=fence)

    @property
    def phases(self) -> list[str]:
        return [phase for phase, _ in self.lab.phases]

    @property
    def log(self) -> str:
        return (self.folder / "out" / "driver.log").read_text()


class Two:
    """Played testboxes `serving` and `asking`, and their cluster."""

    def __init__(self, folder: Path, serving: str, asking: str, /, **more: dict[str, Any]) -> None:
        self.folder = folder
        testboxes = folder / "workers" / "testboxes"
        testboxes.mkdir(parents=True)
        (folder / "workers" / "rootfs").symlink_to(ROOT / "workers" / "rootfs")
        (folder / "image").write_bytes(b"a kernel")
        (folder / "config").write_text("CONFIG_INET=y\n")
        (folder / "key").touch(mode=0o600)
        (folder / "known").touch()
        self.worlds = {
            name: self._play(name, behaves, more.get(name, {}))
            for name, behaves in (("serving", serving), ("asking", asking))
        }
        self._shim()
        cluster = {
            "nodes": {"server": "serving", "client": "asking"},
            "wire": {"cards": {"server": "eth1", "client": "eth1"}},
            **more.get("cluster", {}),
        }
        about = {
            "name": "two",
            "tbox_group": "cs-two",
            "driver": "cluster",
            "model": "played",
            "nr_cpu": 1,
            "memory_mb": 64,
            "cluster": cluster,
        }
        (testboxes / "two.yaml").write_text(json.dumps(about))
        program = folder / "jobs" / "programs" / "talks"
        program.mkdir(parents=True)
        (program / "meta.yaml").write_text("kind: benchmark\nscope: micro\ndescribe: a test\n")
        for part in ("run", "serve", "client"):
            (program / part).write_text("#!/bin/sh\necho 7\n")
        self.site = Site(
            cache=folder / "cache",
            workers=folder / "workers",
            jobs=folder / "jobs",
            benchmarks=None,
            make_jobs=1,
        )
        self.lab = Lab(site=self.site, testbox="two", image=folder / "image", out=folder / "out")

    def _play(self, name: str, behaves: str, more: dict[str, Any]) -> World:
        world = played_testbox.new(self.folder / name, behaves)
        switches = {
            what: [*PROGRAM, "power", str(world.folder), what]
            for what in ("on", "off", "cycle", "status")
        }
        how = {
            "host": name,
            "key": f"{self.folder}/key",
            "known_hosts": f"{self.folder}/known",
            "enter": "kexec",
            "power": switches,
            "panic_seconds": 1,
        }
        how |= {
            "console": {"command": ["tail", "-n", "+1", "-f", f"{world.folder}/console"]},
            "return_seconds": 8,
            "idle_release": "6.1.0-*",
            **more,
        }
        testbox = {
            "name": name,
            "tbox_group": "g",
            "driver": "ssh",
            "model": "played",
            "nr_cpu": 1,
            "memory_mb": 64,
            "ssh": how,
        }
        (self.folder / "workers" / "testboxes" / f"{name}.yaml").write_text(json.dumps(testbox))
        return world

    def _shim(self) -> None:
        (self.folder / "bin").mkdir()
        shim = self.folder / "bin" / "ssh"
        shim.write_text(f"""#!/bin/sh
            case " $* " in *" serving "*) world=serving ;; *) world=asking ;; esac
            exec {shlex.join(PROGRAM)} ssh {self.folder}/$world "$@"
            """)
        shim.chmod(0o755)

    def boot(self) -> dict[str, Any]:
        return self.lab.boot([a_job("talks", cluster="cs-two")], k=0)

    @property
    def phases(self) -> list[tuple[str, str]]:
        return self.lab.phases

    @property
    def phase_names(self) -> list[str]:
        return [phase for phase, _ in self.phases]

    @property
    def run(self) -> list[str]:
        return [world["runs"] for world in self.worlds.values()]

    def log(self, role: str = "") -> str:
        return (self.folder / "out" / f"{role}driver.log").read_text()


def ssh_lab(folder: Path) -> Lab:
    """A testbox whose kernels really run the programs of their jobs."""
    return Testbox(folder, "works").lab


def cluster_lab(folder: Path) -> Lab:
    """Two of them. Each program is its own part for both ends."""
    two = Two(folder, "works", "works")
    for name in PROGRAMS:
        program = programs_in(folder / "jobs", {name: PROGRAMS[name]}) / "programs" / name
        for part in ("serve", "client"):
            shutil.copy(program / "run", program / part)
    return replace(two.lab, who="client asking: ")
