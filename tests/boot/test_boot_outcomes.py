"""Each outcome from a real kernel that was provoked to it, and boots that repeat exactly."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.testbox.file import load_all
from swingbot_worker.site import Site
from swingbot_worker.testbox.qemu import kvm
from tests.boot.lab import virtual_lab
from tests.boot.test_kernel_build import build, edited
from tests.contract.labs import ROOT, a_job

SMALL: list[dict[str, Any]] = [
    a_job("page-fault", mode="process", nr_task="1", cycles="1", size="33554432"),
    a_job(
        "hackbench",
        runs=2,
        mode="process",
        ipc="pipe",
        nr_threads="1",
        iterations="1",
        loops="20",
        fds="20",
        datasize="100",
    ),
]


def samples(results: Path, unit_jobs: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Every sample of a boot, by `unit job/run metric`."""
    runs = parse_results(
        results,
        [codec.typed(UnitJob, job) for job in unit_jobs],
        load_programs(ROOT / "jobs" / "programs"),
    )
    return {
        f"{run.unit_job}/{run.number} {metric}": values
        for run in runs
        for metric, values in run.samples.items()
    }


def test_equal_boots_give_equal_bytes_and_another_perturbation_other_numbers(
    tmp_path: Path, base_kernel: Path
) -> None:
    raw, seen = [], []
    for number, k in enumerate((0, 0, 1)):
        lab = virtual_lab(tmp_path / str(number), base_kernel)
        assert lab.boot(SMALL, k=k)["status"] == "up"
        raw.append((lab.out / "results.tar").read_bytes())
        seen.append(samples(lab.out / "results.tar", SMALL))
    assert raw[0] == raw[1]
    metrics = set(seen[0])
    assert {
        "page-fault-job/0 page-fault.per_process_ops",
        "hackbench-job/1 hackbench.throughput",
        "hackbench-job/1 perf-stat.task-clock",
    } <= metrics
    assert seen[2].keys() == metrics
    assert seen[0] != seen[2]
    for metric in metrics:
        if metric.endswith(("per_process_ops", "throughput", "task-clock")):
            # hackbench this short is rough
            assert seen[2][metric] == pytest.approx(seen[0][metric], rel=0.25)


@pytest.mark.parametrize("testbox", ["vm-icount", "vm-tcg"])
def test_the_shipped_programs_run_and_their_samples_are_read(
    tmp_path: Path, base_kernel: Path, testbox: str
) -> None:
    jobs = [*SMALL, a_job("netperf", test="UDP_STREAM", ip="ipv4", nr_threads="1", runtime="1")]
    lab = virtual_lab(tmp_path, base_kernel, testbox=testbox)
    outcome = lab.boot(jobs)
    assert (outcome["status"], outcome["reason"]) == ("up", None)
    assert {run["status"] for run in outcome["runs"]} == {"ok"}
    assert "netperf-job/0 netperf.Throughput_Mbps" in samples(lab.out / "results.tar", jobs)
    assert outcome["facts"]["nr_cpu"] == {"vm-icount": 1, "vm-tcg": 2}[testbox]
    assert {
        "rootfs",
        "sha256.netperf",
        "version.netperf",
        "qemu_version",
        "perturbation_us",
        "thp_enabled",
    } <= set(outcome["facts"])


def test_the_first_run_of_a_boot_takes_what_the_others_take(
    tmp_path: Path, base_kernel: Path
) -> None:
    params = {"test": "UDP_STREAM", "ip": "ipv4", "nr_threads": "1", "runtime": "1"}
    jobs = [a_job("netperf", runs=2, **params)]
    lab = virtual_lab(tmp_path, base_kernel)
    assert lab.boot(jobs)["status"] == "up"
    seen = samples(lab.out / "results.tar", jobs)
    for event in ("task-clock", "duration_time"):
        first, second = (seen[f"netperf-job/{run} perf-stat.{event}"] for run in (0, 1))
        assert first == pytest.approx(second, rel=0.02)


STALE = (
    "[    4.4] int3: 0000 [#1] SMP\n[    4.4] Code:"
    " 41 8b 4f 20 66 <90> f7 c1\n[    4.5] Kernel panic - not syncing: Fatal exception\n"
)


@pytest.mark.parametrize(("spoilt", "status"), [(1, "up"), (3, "infra")])
def test_a_boot_that_qemu_spoils_is_made_again(
    tmp_path: Path, base_kernel: Path, monkeypatch: pytest.MonkeyPatch, spoilt: int, status: str
) -> None:
    real = shutil.which("qemu-system-x86_64")
    counter, shim = tmp_path / "boots", tmp_path / "bin" / "qemu-system-x86_64"
    shim.parent.mkdir()
    shim.write_text(
        f"""#!/bin/sh
        [ "$1" = --version ] && exec {real} "$@"
        echo boot >>{counter}
        [ "$(wc -l <{counter})" -gt {spoilt} ] && exec {real} "$@"
        for word; do case $word in file,id=console,path=*) console=${{word##*=}} ;; esac; done
        printf '%s' '{STALE}' >"$console"
        """
    )
    shim.chmod(0o755)
    lab = virtual_lab(tmp_path, base_kernel)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    outcome = lab.boot(SMALL[:1])
    assert outcome["status"] == status, outcome["reason"]
    assert len(counter.read_text().splitlines()) == min(spoilt + 1, 3)
    if status == "up":
        assert outcome["facts"]["boots_spoilt_by_qemu"] == spoilt
        assert b"int3" not in (lab.out / "console.log").read_bytes()
    else:
        assert "QEMU 8.1" in outcome["reason"]


def test_a_kernel_that_complains_is_oopsed_although_its_job_ended(
    tmp_path: Path, base_kernel: Path
) -> None:
    outcome = virtual_lab(tmp_path, base_kernel).boot([a_job("complains")])
    assert (outcome["status"], outcome["reason"]) == (
        "oopsed",
        "BUG: Bad page state in process complains",
    )
    assert outcome["runs"][0]["status"] == "ok"


def test_a_kernel_with_a_bug_is_oopsed_and_the_line_of_the_source_is_reported(
    tmp_path: Path, kernel_repo: tuple[Path, str], site: Site
) -> None:
    bare, base = kernel_repo
    repo = tmp_path / "linux.git"
    subprocess.run(["git", "clone", "-q", "--bare", "--shared", bare, repo], check=True)
    bug = edited(
        repo,
        base,
        "fs/drop_caches.c",
        "\tif (write) {\n",
        "\tBUG_ON(write && sysctl_drop_caches == 4);\n\tif (write) {\n",
    )
    assert build(repo, bug, tmp_path / "build", site)["status"] == "built"
    lab = virtual_lab(tmp_path / "lab", tmp_path / "build" / "bzImage")
    outcome = lab.boot(
        [a_job("prints", word="1"), a_job("drops"), a_job("prints", word="2") | {"name": "after"}]
    )
    assert outcome["status"] == "oopsed"
    assert outcome["reason"].startswith("kernel BUG at fs/drop_caches.c:")
    assert [run["status"] for run in outcome["runs"]] == ["ok", "failed", "ok"]


def test_a_machine_that_resets_without_a_word_is_no_success(
    tmp_path: Path, base_kernel: Path
) -> None:
    outcome = virtual_lab(tmp_path, base_kernel).boot([a_job("resets")])
    assert outcome["status"] == "panicked"
    assert outcome["reason"].startswith("the machine reset or powered off")


def test_a_kernel_that_never_reaches_its_job_is_hung_and_says_where(
    tmp_path: Path, base_kernel: Path
) -> None:
    outcome = virtual_lab(
        tmp_path, base_kernel, cmdline="rdinit=/usr/bin/cat", boot_seconds=0.2
    ).boot(SMALL)
    assert outcome["status"] == "hung"
    assert "before the job began; last on the console: " in outcome["reason"]
    assert outcome["seconds"] < 300, "silence ends it, long before the deadline"


def test_a_job_without_end_costs_its_own_time_only(tmp_path: Path, base_kernel: Path) -> None:
    outcome = virtual_lab(tmp_path, base_kernel).boot(
        [a_job("prints", word="1"), a_job("spins", runtime="3600")], deadline_seconds=20
    )
    assert (outcome["status"], outcome["fault"]) == ("infra", "limit")
    assert outcome["reason"].startswith("A limit ended the boot: not done after 20 s; ")
    assert [run["status"] for run in outcome["runs"]] == ["ok", "missing"]


def test_a_flooded_console_ends_the_boot_and_fills_no_disk(
    tmp_path: Path, base_kernel: Path
) -> None:
    lab = virtual_lab(tmp_path, base_kernel)
    outcome = lab.boot([a_job("floods")])
    assert (outcome["status"], outcome["fault"]) == ("infra", "limit")
    assert outcome["reason"].startswith("A limit ended the boot: the console was flooded")
    assert outcome["files"]["console.log"]["size"] <= 1 << 20


@pytest.mark.parametrize("kind", ["empty", "garbage", "cut short", "another program"])
def test_an_image_that_is_no_kernel_is_the_kernel_s_fault(
    tmp_path: Path, base_kernel: Path, kind: str
) -> None:
    image = tmp_path / "bzImage"
    contents = {
        "empty": b"",
        "garbage": bytes(range(256)) * 4096,
        "cut short": base_kernel.read_bytes()[: base_kernel.stat().st_size // 2],
        "another program": Path("/bin/busybox").read_bytes(),
    }
    image.write_bytes(contents[kind])
    outcome = virtual_lab(tmp_path / "lab", image).boot(SMALL)
    assert outcome["status"] in ("panicked", "hung")
    assert outcome["reason"]


def children_of(pid: int) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process(pid).children(recursive=True)
        if child.name().startswith("qemu")
    ]


def test_a_killed_driver_leaves_no_machine_behind(tmp_path: Path, base_kernel: Path) -> None:
    lab = virtual_lab(tmp_path, base_kernel)
    order = tmp_path / "order.yaml"
    order.write_text(yaml.safe_dump(lab.order([a_job("spins")])))
    env = os.environ | {
        "SWINGBOT_PATHS_WORKERS": str(lab.site.workers),
        "SWINGBOT_PATHS_JOBS": str(lab.site.jobs),
    }
    driver = subprocess.Popen(
        [
            Path(sys.executable).parent / "swingbot-worker",
            "boot",
            "--order",
            order,
            "--out",
            lab.out,
        ],
        env=env,
    )
    try:
        machines = wait_for(lambda: children_of(driver.pid), 30)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    _, alive = psutil.wait_procs(machines, timeout=15)
    assert machines
    assert not alive


def wait_for(look: Any, seconds: float) -> Any:
    give_up = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < give_up:
        time.sleep(0.1)
    return found


def test_the_kvm_probe_tells_a_kernel_that_runs_from_one_that_hangs(
    tmp_path: Path, base_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbox = load_all(ROOT / "workers" / "testboxes")["vm-tcg"]
    assert kvm.runs("tcg", testbox, base_kernel)
    monkeypatch.setattr(kvm, "PROBE_SECONDS", 1.5)
    hung = tmp_path / "bzImage"
    image = bytearray(base_kernel.read_bytes())
    start = (
        image[0x1F1] + 1
    ) * 512 + 0x200  # setup_sects: where the 64-bit entry of the kernel lies
    image[start : start + 2] = b"\xeb\xfe"  # jmp to itself
    hung.write_bytes(image)
    assert not kvm.runs("tcg", testbox, hung)


def test_a_testbox_that_wants_kvm_gets_it_or_says_that_it_does_not_work(
    tmp_path: Path, base_kernel: Path
) -> None:
    lab = virtual_lab(tmp_path, base_kernel, testbox="vm-tcg")
    facts = lab.site.workers / "testboxes" / "vm-tcg.yaml"
    facts.write_text(facts.read_text().replace("accel: tcg", "accel: kvm"))
    outcome = lab.boot([a_job("prints", word="1")])
    if outcome["status"] == "infra":
        assert "a probe boot under KVM failed on this host" in outcome["reason"]
    else:
        assert outcome["status"] == "up"


SERVER = {
    "nr_cpu: 2": "nr_cpu: 4\nnr_node: 2",
    "  accel: tcg": "  accel: tcg\n  disk: nvme\n  nic: e1000e",
}


def test_a_machine_with_two_sockets_a_disk_and_a_card_boots(
    tmp_path: Path, base_kernel: Path
) -> None:
    lab = virtual_lab(tmp_path, base_kernel, testbox="vm-tcg", boot_seconds=6)
    edit(lab.site.workers / "testboxes" / "vm-tcg.yaml", SERVER)
    outcome = lab.boot(SMALL)
    assert (outcome["status"], outcome["reason"]) == ("up", None)
    assert (outcome["facts"]["nr_cpu"], outcome["facts"]["nr_socket"]) == (4, 2)


def test_a_kernel_without_efi_is_not_started_from_uefi(tmp_path: Path, base_kernel: Path) -> None:
    image = tmp_path / "bzImage"
    image.symlink_to(base_kernel)
    (tmp_path / "config").write_text("CONFIG_EFI=y\n# CONFIG_EFI_STUB is not set\n")
    lab = virtual_lab(tmp_path, image, testbox="vm-tcg")
    edit(
        lab.site.workers / "testboxes" / "vm-tcg.yaml",
        {"  accel: tcg": "  accel: tcg\n  firmware: uefi"},
    )
    outcome = lab.boot()
    assert (outcome["status"], outcome["fault"]) == ("infra", "order")
    assert "vm-tcg starts from UEFI, and the kernel lacks CONFIG_EFI_STUB=y" in outcome["reason"]


def edit(file: Path, replaced: dict[str, str]) -> None:
    text = file.read_text()
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
