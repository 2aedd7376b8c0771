"""Debian's kernels with the configuration for servers, on a virtual machine with the parts of one:
UEFI, 16 processors on two nodes, an NVMe disk and an Intel network card, booted to a measured run.

A build from nothing takes half an hour of one processor; `.ci/lab` installs the packages.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from swingbot_jobs import codec
from swingbot_jobs.language.expand import expand
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.testbox.file import load_all
from swingbot_jobs.testbox.visible_hardware import short_of
from swingbot_worker.site import Site
from tests.boot import lab as labs
from tests.boot.lab import virtual_lab
from tests.boot.test_boot_outcomes import samples
from tests.contract.labs import ROOT, a_job
from tests.lab.test_compilers import a_build

pytestmark = pytest.mark.timeout(10_800)

# What the firmware, the disk and the card are, as the kernel under test has them.
SHOWS = """
read -r serial </sys/block/nvme0n1/device/serial  # without the spaces that fill it
echo "firmware $(ls -d /sys/firmware/efi)"
echo "disk $serial"
echo "card $(basename "$(readlink /sys/class/net/eth0/device/driver)")"
"""
FAULTS = "page-fault: {mode: process, nr_task: 100%, cycles: 1, size: 16M}\n"


# Lines that a release does not accept: in 7.x, five levels of page tables are not an option.
NOT_ACCEPTED = {"6.1": [], "6.12": [], "7": ["CONFIG_X86_5LEVEL=y (it has no such option)"]}


@pytest.mark.parametrize("release", NOT_ACCEPTED)
def test_a_server_sees_all_its_hardware_and_measures(
    site: Site, tmp_path: Path, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "kernel"
    built = a_build(site, release, "gcc", 0, out, kconfig="server-x86_64")
    assert built["status"] == "built", built["reason"]
    log = (out / "build.log").read_text()
    assert re.findall(r"does not accept: (.*)", log) == NOT_ACCEPTED[release]
    monkeypatch.setitem(labs.PROVOKING, "shows", SHOWS)
    lab = virtual_lab(
        tmp_path / "boot", out / "bzImage", testbox="examples/vm-server", boot_seconds=300
    )
    testbox = load_all(lab.site.workers / "testboxes")["vm-server"]
    programs = load_programs(ROOT / "jobs" / "programs")
    (faults,) = expand(FAULTS, "faults.yaml", testbox, programs, {})
    assert faults.params["nr_task"] == "16"
    jobs = [codec.plain(faults), a_job("shows")]
    outcome = lab.boot(jobs)
    assert (outcome["status"], outcome["reason"]) == ("up", None)
    facts = outcome["facts"]
    assert (facts["nr_cpu"], facts["nr_socket"], facts["nr_node"]) == (16, 2, 2)
    assert short_of(testbox, facts) is None
    results = lab.out / "results.tar"
    assert samples(results, [codec.plain(faults)])[f"{faults.name}/0 page-fault.per_process_ops"]
    assert read_results(results).runs["shows-job", 0]["stdout"].split("\n")[:3] == [
        "firmware /sys/firmware/efi",
        "disk swingbot",
        "card e1000e",
    ]
