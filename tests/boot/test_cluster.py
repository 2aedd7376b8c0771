"""Two machines and the wire between them: real guests, whose network is a socket of this host's
file system.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from tests.boot.wired import RR, ends_both, leased, wired_lab
from tests.contract.labs import ROOT, a_job

UDP6: dict[str, Any] = {
    **a_job("netperf", cluster="cs-vm", test="UDP_STREAM", ip="ipv6", nr_threads="2", runtime="1"),
    "name": "udp6",
}


def test_netperf_runs_over_the_wire_and_both_ends_are_on_record(
    tmp_path: Path, wired_kernel: Path
) -> None:
    lab = wired_lab(tmp_path, wired_kernel)
    outcome = lab.boot([RR, UDP6])
    assert (outcome["status"], outcome["reason"]) == ("up", None)
    assert [run["status"] for run in outcome["runs"]] == ["ok"] * 3
    runs = parse_results(
        lab.out / "results.tar",
        [codec.typed(UnitJob, job) for job in (RR, UDP6)],
        load_programs(ROOT / "jobs" / "programs"),
        outcome["facts"],
    )
    # How much gets through depends on the host's load.
    assert all(run.samples["netperf.Throughput_tps"][0] > 0 for run in runs[:2])
    assert runs[2].samples["netperf.ThroughputRecv_Mbps"][0] > 0
    # What the client sent went over its card and not over loopback.
    [packets] = [
        value
        for name, values in runs[2].samples.items()
        if "virtio" in name and name.startswith("interrupts.")
        for value in values
        if value > 50
    ]
    assert packets
    facts = outcome["facts"]
    assert (
        facts["server_testbox"],
        facts["client_testbox"],
        facts["wire_driver"],
        facts["server.wire_driver"],
    ) == (
        "vm-tcg",
        "vm-tcg",
        "virtio_net",
        "virtio_net",
    )
    assert facts["server.kernel_version"] == facts["kernel_version"]
    assert {
        "console.log",
        "server.console.log",
        "results.tar",
        "server.results.tar",
        "job.sh",
    } <= set(outcome["files"])
    boots = 1 + facts["boots_spoilt_by_qemu"]
    assert [phase for phase, _ in lab.phases] == ["booting"] * boots + ["idle"]
    assert not leased(lab.site, "vm-tcg")


@pytest.mark.parametrize(
    ("program", "status", "says"),
    [
        ("server-panics", "panicked", "server vm-tcg: Kernel panic - not syncing"),
        ("client-panics", "panicked", "client vm-tcg: Kernel panic - not syncing"),
    ],
)
def test_a_panic_is_reported_with_the_testbox_that_it_was_on_and_ends_both(
    tmp_path: Path, wired_kernel: Path, program: str, status: str, says: str
) -> None:
    ends_both(wired_lab(tmp_path, wired_kernel), program, status, says)


def test_a_server_that_never_comes_up_ends_the_client_too(
    tmp_path: Path, wired_kernel: Path
) -> None:
    lab = wired_lab(tmp_path, wired_kernel)
    testboxes = lab.site.workers / "testboxes"
    other = (testboxes / "vm-tcg.yaml").read_text().replace("name: vm-tcg", "name: vm-bad")
    (testboxes / "vm-bad.yaml").write_text(
        other.replace('cmdline: ""\n', "") + '\ncmdline: "rdinit=/nothing init=/nothing"\n'
    )
    (testboxes / "cs-vm.yaml").write_text(
        (testboxes / "cs-vm.yaml").read_text().replace("server: vm-tcg", "server: vm-bad")
    )
    outcome = lab.boot([RR])
    assert outcome["status"] == "panicked"
    assert outcome["reason"].startswith(
        "server vm-bad: Kernel panic - not syncing: Requested init /nothing failed"
    )
    assert {run["status"] for run in outcome["runs"]} == {"missing"}
    assert "cannot" not in outcome["reason"] and outcome["seconds"] < 60


def test_a_kernel_without_a_card_is_reported_as_such(tmp_path: Path, base_kernel: Path) -> None:
    lab = wired_lab(tmp_path, base_kernel)
    outcome = lab.boot([RR])
    assert outcome["status"] == "hung"
    assert "the kernel under test has no network card 52:54:00:5b:00:0" in outcome["reason"]


def test_a_kernel_whose_configuration_lacks_the_card_is_not_booted(
    tmp_path: Path, base_kernel: Path
) -> None:
    image = tmp_path / "bzImage"
    shutil.copyfile(base_kernel, image)
    image.with_name("config").write_text("CONFIG_VIRTIO_PCI=y\nCONFIG_INET=y\n")
    outcome = wired_lab(tmp_path, image).boot([RR])
    assert (outcome["status"], outcome["fault"]) == ("infra", "order")
    assert (
        "lacks options that the wire of cluster cs-vm needs: CONFIG_VIRTIO_NET=y;"
        " add the fragment net-virtio to the kernel configuration of the tree or the testbox"
    ) in outcome["reason"]
