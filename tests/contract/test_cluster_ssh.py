"""A cluster of two bare-metal testboxes that are only played: what is done with both together; how each is driven is in test_testbox_ssh.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from swingbot_worker import lease
from swingbot_worker.site import Site
from swingbot_worker.testbox.ssh import session, switch
from tests.contract.labs import ROOT, Lab, a_job
from tests.fakes import played_box
from tests.fakes.played_box import World

PROGRAM = [sys.executable, played_box.__file__]
OUT = ["booting", "running", "returning", "idle"]


class Two:
    """Played boxes `serving` and `asking`, and their cluster."""

    def __init__(self, folder: Path, serving: str, asking: str, /, **more: dict[str, Any]) -> None:
        self.folder = folder
        boxes = folder / "workers" / "testboxes"
        boxes.mkdir(parents=True)
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
        (boxes / "two.yaml").write_text(json.dumps(about))
        program = folder / "jobs" / "programs" / "talks"
        program.mkdir(parents=True)
        for part in ("run", "serve", "client"):
            (program / part).write_text("#!/bin/sh\necho 7\n")
        self.site = Site(
            cache=folder / "cache",
            workers=folder / "workers",
            jobs=folder / "jobs",
            benchmarks=None,
            make_jobs=1,
        )
        self.lab = Lab(site=self.site, box="two", image=folder / "image", out=folder / "out")

    def _play(self, name: str, behaves: str, more: dict[str, Any]) -> World:
        world = played_box.new(self.folder / name, behaves)
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
        box = {
            "name": name,
            "tbox_group": "g",
            "driver": "ssh",
            "model": "played",
            "nr_cpu": 1,
            "memory_mb": 64,
            "ssh": how,
        }
        (self.folder / "workers" / "testboxes" / f"{name}.yaml").write_text(json.dumps(box))
        return world

    def _shim(self) -> None:
        (self.folder / "bin").mkdir()
        shim = self.folder / "bin" / "ssh"
        shim.write_text(f"""#!/bin/sh
            case " $* " in *" serving "*) world=serving ;; *) world=asking ;; esac
            exec {PROGRAM[0]} {PROGRAM[1]} ssh {self.folder}/$world "$@"
            """)
        shim.chmod(0o755)

    def boot(self) -> dict[str, Any]:
        return self.lab.boot([a_job("talks", cluster="cs-two")], k=0)

    @property
    def phases(self) -> list[tuple[str, str]]:
        return self.lab.phases

    @property
    def told(self) -> list[str]:
        return [phase for phase, _ in self.phases]

    @property
    def run(self) -> list[str]:
        return [world["runs"] for world in self.worlds.values()]

    def log(self, role: str = "") -> str:
        return (self.folder / "out" / f"{role}driver.log").read_text()


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes two boxes that behave as told; what takes minutes on a real one takes seconds here."""
    monkeypatch.setenv("PATH", f"{tmp_path}/two/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    for name, seconds in (
        ("LOOK_SECONDS", 0.05),
        ("KNOCK_SECONDS", 0.1),
        ("QUIET_SECONDS", 6.0),
        ("LEAVE_SECONDS", 2.0),
    ):
        monkeypatch.setattr(session, name, seconds)
    monkeypatch.setattr(switch, "OFF_SECONDS", 0.0)
    return lambda serving, asking, /, **more: Two(tmp_path / "two", serving, asking, **more)


def test_both_are_entered_and_both_go_home(two: Any) -> None:
    pair = two("up", "up")
    outcome = pair.boot()
    assert (outcome["status"], outcome["reason"]) == ("up", None), pair.log()
    assert pair.told == OUT
    assert pair.run == ["idle", "idle"]
    assert (
        outcome["facts"]["entered_by"],
        outcome["facts"]["server.entered_by"],
        outcome["facts"]["server.ready_seconds"],
    ) == ("kexec", "kexec", 1.5)
    assert {
        "driver.log",
        "server.driver.log",
        "console.log",
        "server.console.log",
        "results.tar",
        "server.results.tar",
    } <= set(outcome["files"])
    assert outcome["runs"][0]["status"] == "missing"  # they are only played
    with lease.boxes(pair.site.cache, ["serving", "asking"], patience=-1):
        pass


@pytest.mark.parametrize(
    ("serving", "asking", "says"),
    [
        ("panics", "up", "server serving: "),
        ("up", "panics", "client asking: "),
        ("panics", "hangs", "server"),
    ],
)
def test_a_panic_is_told_with_its_box_and_both_go_home(
    two: Any, serving: str, asking: str, says: str
) -> None:
    pair = two(serving, asking)
    outcome = pair.boot()
    assert outcome["status"] == "panicked"
    assert outcome["reason"].startswith(says) and "Kernel panic" in outcome["reason"]
    assert pair.told[-1] == "idle"
    assert pair.run == ["idle", "idle"]


def test_a_box_that_cannot_begin_keeps_the_other_in_its_idle_system(two: Any) -> None:
    pair = two("up", "up", serving={"kconfig_needed": ["SCSI"]})
    before = pair.worlds["asking"]["boot_id"]
    outcome = pair.boot()
    assert (outcome["status"], outcome["fault"]) == ("infra", "order")
    assert outcome["reason"].startswith(
        "Cluster two, server serving: The kernel lacks what testbox serving needs: CONFIG_SCSI=y"
    )
    assert pair.worlds["asking"]["boot_id"] == before
    assert pair.run == ["idle", "idle"]


def test_what_the_wire_needs_is_looked_for_before_anything_begins(two: Any) -> None:
    pair = two("up", "up", cluster={"kconfig_needed": ["IXGBE"]})
    outcome = pair.boot()
    assert (outcome["status"], outcome["fault"], pair.told) == ("infra", "order", [])
    assert "lacks what the wire of cluster two needs: CONFIG_IXGBE=y" in outcome["reason"]


def test_a_box_that_does_not_come_back_is_lost_by_name(two: Any) -> None:
    pair = two("up", "hangs", asking={"power": "none", "return_seconds": 1})
    outcome = pair.boot()
    assert outcome["status"] == "infra"
    assert outcome["reason"].startswith("Cluster two, client asking: Testbox asking is lost")
    phase, why = pair.phases[-1]
    assert phase == "lost"
    assert why.startswith("client asking: ")
    assert pair.run[0] == "idle"


def test_a_box_that_stays_in_its_idle_system_is_named_and_the_other_is_home(two: Any) -> None:
    pair = two("stays", "up")
    outcome = pair.boot()
    assert outcome["status"] == "infra"
    assert outcome["reason"].startswith("Cluster two, server serving: ")
    assert pair.run == ["idle", "idle"]
