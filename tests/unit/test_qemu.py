"""The QEMU command line and the decisions about a virtual boot that need no QEMU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import load_all
from swingbot_worker.testbox.limits import limits
from swingbot_worker.testbox.qemu import argv

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "testbox"
TESTBOXES = {
    name: testbox
    for name, testbox in load_all(ROOT / "workers" / "testboxes").items()
    if not testbox.nodes
}
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


@pytest.mark.parametrize("name", sorted(TESTBOXES))
def test_the_command_line_is_the_golden_one(name: str) -> None:
    made = shown(argv.qemu_argv(TESTBOXES[name], FILES, delay_us=4656))
    golden = GOLDEN / f"{name}.argv"
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


def test_only_the_perturbation_tells_two_boots_of_a_testbox_apart() -> None:
    first, second = (argv.qemu_argv(TESTBOXES["vm-icount"], FILES, delay) for delay in (11, 12))
    assert [(a, b) for a, b in zip(first, second, strict=True) if a != b] == [
        tuple(argv.kernel_cmdline(TESTBOXES["vm-icount"], delay) for delay in (11, 12)),
    ]


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
