"""A cluster of two bare-metal testboxes with a cable between them: both kexec into the kernel under
test, and both are in their idle systems again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.testbox.file import load_file
from swingbot_worker.site import Site
from swingbot_worker.testbox.check import check
from tests.boot.wired import wired_lab
from tests.contract.labs import ROOT, Lab, a_job
from tests.lab.iron import RETURN_SECONDS, iron
from tests.lab.machine import Machine, power

pytestmark = pytest.mark.timeout(3600)
CARDS = {"server": "52:54:00:77:00:01", "client": "52:54:00:77:00:02"}
RR: dict[str, Any] = a_job(
    "netperf", cluster="cs-iron", test="TCP_RR", ip="ipv4", nr_threads="1", runtime="2"
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two machines, their testbox files and that of their cluster."""

    machines: dict[str, Machine]
    site: Site
    image: Path
    out: Path

    def boot(self, *jobs: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The outcome, and the reported phases."""
        lab = Lab(site=self.site, testbox="cs-iron", image=self.image, out=self.out)
        return lab.boot(jobs, k=0), lab.phases


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Machine]]:
    """Each with a second card, whose cable is a pair of sockets in the file system:
    it stays plugged when one of them is reset.
    """
    if os.getuid() != 0:
        pytest.skip("the machines' disks are made by mmdebstrap and mke2fs as root")
    folder = tmp_path_factory.mktemp("pair")
    made: dict[str, Machine] = {}
    for role, other in (("server", "client"), ("client", "server")):
        cable = (
            f"dgram,id=wire,local.type=unix,local.path={folder}/{role}.wire"
            f",remote.type=unix,remote.path={folder}/{other}.wire"
        )
        made[role] = Machine.create(
            folder / role,
            extra=(
                "-netdev",
                cable,
                "-device",
                f"virtio-net-pci,netdev=wire,mac={CARDS[role]},romfile=",
            ),
        )
    try:
        for machine in made.values():
            power(machine.folder, "on")
        for machine in made.values():
            machine.wait_for_ssh(RETURN_SECONDS)
        yield made
    finally:
        for machine in made.values():
            machine.stop()


@pytest.fixture
def pair(tmp_path: Path, machines: dict[str, Machine], wired_kernel: Path) -> Pair:
    labs = {
        role: iron(tmp_path / role, machine, wired_kernel) for role, machine in machines.items()
    }
    wired = wired_lab(tmp_path / "lab", wired_kernel)
    testboxes = wired.site.workers / "testboxes"
    for lab in labs.values():
        (testboxes / lab.file.name).write_text(lab.file.read_text())
    nodes = {role: lab.name for role, lab in labs.items()}
    cluster = {"nodes": nodes, "wire": {"cards": CARDS}, "kconfig_needed": ["VIRTIO_NET"]}
    about = {
        "name": "cs-iron",
        "tbox_group": "cs-iron",
        "driver": "cluster",
        "model": "two Debian machines in QEMU",
        "nr_cpu": 2,
        "memory_mb": 2048,
    }
    (testboxes / "cs-iron.yaml").write_text(
        json.dumps(about | {"boot_seconds": 120, "cluster": cluster})
    )
    (wired.site.workers / "tuning").symlink_to(ROOT / "workers" / "tuning")
    return Pair(machines=machines, site=wired.site, image=wired_kernel, out=tmp_path / "out")


def home(machines: dict[str, Machine]) -> None:
    for machine in machines.values():
        machine.wait_for_ssh(RETURN_SECONDS)
        assert "swingbot=" not in machine.ssh("cat /proc/cmdline")


def test_both_leave_their_idle_systems_together_measure_over_the_cable_and_come_home(
    pair: Pair,
) -> None:
    assert [
        finding.what
        for finding in check(load_file(pair.site.workers / "testboxes" / "cs-iron.yaml"), pair.site)
        if not finding.ok
    ] == []
    outcome, phases = pair.boot(RR)
    assert (outcome["status"], outcome["reason"]) == ("up", None)
    [run] = parse_results(
        pair.out / "results.tar",
        [codec.typed(UnitJob, RR)],
        load_programs(ROOT / "jobs" / "programs"),
        outcome["facts"],
    )
    assert run.samples["netperf.Throughput_tps"][0] > 1
    facts = outcome["facts"]
    assert {facts[f"{end}entered_by"] for end in ("", "server.")} == {"kexec"}
    assert {facts[f"{end}wire_driver"] for end in ("", "server.")} == {"virtio_net"}
    assert {"driver.log", "server.driver.log", "console.log", "server.console.log"} <= set(
        outcome["files"]
    )
    assert [phase for phase, _ in phases] == ["booting", "running", "returning", "idle"]
    home(pair.machines)


def test_a_server_that_panics_is_named_and_both_come_home(pair: Pair) -> None:
    outcome, phases = pair.boot(a_job("server-panics", cluster="cs-iron"))
    assert outcome["status"] == "panicked"
    assert outcome["reason"].startswith("server iron-")
    assert phases[-1][0] == "idle"
    home(pair.machines)


def test_a_testbox_that_cannot_begin_keeps_the_other_in_its_idle_system(pair: Pair) -> None:
    before = pair.machines["client"].boot_id()
    pair.machines["server"].ssh("mv /usr/sbin/kexec /usr/sbin/kexec.away")
    try:
        outcome, _ = pair.boot(RR)
    finally:
        pair.machines["server"].ssh("mv /usr/sbin/kexec.away /usr/sbin/kexec")
    assert outcome["status"] == "infra"
    assert outcome["reason"].startswith("Cluster cs-iron, server iron-")
    assert "apt-get install kexec-tools" in outcome["reason"]
    assert pair.machines["client"].boot_id() == before
