"""The QEMU command line and the decisions about a virtual boot that need no QEMU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import load, load_all, load_file
from swingbot_jobs.testbox.table import TestboxError
from swingbot_worker import OrderError
from swingbot_worker.testbox.limits import limits
from swingbot_worker.testbox.qemu import argv, machine
from swingbot_worker.testbox.verdict import BootStatus

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "testbox"
TESTBOXES = {
    name: testbox
    for name, testbox in load_all(ROOT / "workers" / "testboxes").items()
    if not testbox.nodes
}
SERVER = ROOT / "workers/testboxes/examples/vm-server.yaml"
FILES = argv.Files(
    image=Path("/b/bzImage"),
    initrd=Path("/b/initrd"),
    console=Path("/o/console.log"),
    results=Path("/o/results.tar"),
)


def a_job(runs: int = 2, **params: str) -> UnitJob:
    return UnitJob(name="a-job", program="hackbench", params=params, runs=runs)


def shown(argv: list[str]) -> str:
    return (
        "".join(f"{' ' if not word.startswith('-') else chr(10)}{word}" for word in argv).strip()
        + "\n"
    )


@pytest.mark.parametrize(
    "testbox", [*TESTBOXES.values(), load_file(SERVER)], ids=lambda testbox: str(testbox.name)
)
def test_the_command_line_is_the_golden_one(testbox: Testbox) -> None:
    made = shown(argv.qemu_argv(testbox, FILES, delay_us=4656))
    golden = GOLDEN / f"{testbox.name}.argv"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(made)
    assert made == golden.read_text()


def test_a_comma_in_a_path_does_not_end_the_option() -> None:
    files = argv.Files(
        image=FILES.image,
        initrd=FILES.initrd,
        console=Path("/a,b/console.log"),
        results=FILES.results,
    )
    assert "file,id=console,path=/a,,b/console.log" in argv.qemu_argv(
        TESTBOXES["vm-icount"], files, 1
    )


@pytest.mark.parametrize(
    ("text", "instead", "says"),
    [
        ("nr_cpu: 16", "nr_cpu: 15", "make nr_cpu (15) and memory_mb (4096) multiples of it"),
        ("memory_mb: 4096", "memory_mb: 4097", "nr_node is 2, and QEMU gives each node an equal"),
        ("firmware: uefi", "firmware: coreboot", "'coreboot' is not one of bios, uefi"),
        ("disk: nvme", "disk: /dev/sda", "'/dev/sda' is not one of none, nvme, virtio"),
        ("disk: nvme", "disk_mb: 0", "at least 1"),
        ("disk: nvme", "disk_mb: 99999999", "at most 65536"),
        ("nic: e1000e", "nic: user,hostfwd=tcp::22-:22", "is not one of none, e1000e, virtio"),
    ],
)
def test_hardware_that_qemu_cannot_be_given_is_refused(text: str, instead: str, says: str) -> None:
    with pytest.raises(TestboxError) as caught:
        load(SERVER.read_text().replace(text, instead), SERVER.name)
    assert says in str(caught.value)


def test_only_the_perturbation_tells_two_boots_of_a_testbox_apart() -> None:
    first, second = (argv.qemu_argv(TESTBOXES["vm-icount"], FILES, delay) for delay in (11, 12))
    assert [(a, b) for a, b in zip(first, second, strict=True) if a != b] == [
        tuple(argv.kernel_cmdline(TESTBOXES["vm-icount"], delay) for delay in (11, 12)),
    ]


def test_a_root_file_system_that_memory_does_not_hold_is_not_the_fault_of_the_kernel() -> None:
    said = "[    2.415137] rootfs image is not initramfs (write error); looks like an initrd\n"
    machine.check_room("[    2.748565] Freeing initrd memory: 166132K\n", "vm-mm")
    with pytest.raises(OrderError, match="does not fit into the memory of vm-mm"):
        machine.check_room(said, "vm-mm")
    panic = "[    2.745388] Kernel panic - not syncing: No working init found.\n"
    verdict = machine.judged(panic, "vm-mm")
    assert verdict is not None and verdict.status is BootStatus.PANICKED
    with pytest.raises(OrderError, match="does not fit into the memory of vm-mm"):
        machine.judged(said + panic, "vm-mm")


def test_limits_leave_a_slow_kernel_room_and_the_order_knows_the_testbox_better() -> None:
    testbox, jobs = TESTBOXES["vm-icount"], [a_job()]
    assert limits(testbox, jobs, None).wall > 3 * boot_seconds(testbox, jobs)
    for deadline in (12.0, 12_000.0):
        assert limits(testbox, jobs, deadline).wall == deadline


def test_a_silent_kernel_is_given_up_before_the_whole_time_is_gone() -> None:
    for testbox in TESTBOXES.values():
        allowed = limits(testbox, [a_job(runs=3, runtime="10")], None)
        assert allowed.quiet_boot < allowed.quiet_job < allowed.wall


def test_a_longer_job_may_take_longer() -> None:
    testbox: Testbox = TESTBOXES["vm-tcg"]
    assert (
        boot_seconds(testbox, [a_job(runtime="300")])
        > boot_seconds(testbox, [a_job(runtime="3")])
        > boot_seconds(testbox, [])
    )
