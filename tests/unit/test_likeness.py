"""What decides a measurement is the same file on both hosts, or nothing is booted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs.contract.orders import check_order
from swingbot_jobs.testbox import input_digests

KERNEL = {"build_key": "a" * 64, "image_sha256": "b" * 64}
JOBS = [
    {"name": "h", "program": "hackbench", "params": {}, "runs": 1, "monitors": ["vmstat"]},
    {"name": "n", "program": "hackbench", "params": {}, "runs": 2},
]
ORDER: dict[str, Any] = {
    "version": 1,
    "kind": "boot",
    "order": "o1",
    "attempt": "a1",
    "kernel": KERNEL,
    "testbox": "box",
    "k": 0,
    "unit_jobs": JOBS,
}


@pytest.fixture
def master(tmp_path: Path) -> Path:
    root = tmp_path / "master"
    files = {
        "workers/testboxes/box.yaml": "name: box\n",
        "workers/testboxes/other.yaml": "name: other\n",
        "workers/rootfs/init": "#!/bin/sh\n",
        "workers/tuning/quiet.yaml": "name: quiet\n",
        "jobs/programs/hackbench/run": "#!/bin/sh\nhackbench\n",
        "jobs/programs/hackbench/parse.py": "1\n",
        "jobs/programs/hackbench/samples/one.raw": "Time: 1\n",
        "jobs/programs/vmstat/run": "#!/bin/sh\nvmstat 1\n",
        "jobs/programs/netperf/run": "#!/bin/sh\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def difference(master: Path, worker: Path) -> str | None:
    order = check_order(
        ORDER | {"alike": input_digests.of_order(ORDER, master / "jobs", master / "workers")}
    )
    return input_digests.difference(order, worker / "jobs", worker / "workers")


def copy(master: Path) -> Path:
    return Path(shutil.copytree(master, master.with_name("worker")))


def test_equal_files_are_alike_wherever_they_lie(master: Path) -> None:
    assert difference(master, copy(master)) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("workers/testboxes/box.yaml", "testboxes/box.yaml is not the same"),
        ("workers/rootfs/init", "rootfs is not the same"),
        ("workers/tuning/quiet.yaml", "tuning is not the same"),
        ("jobs/programs/hackbench/run", "programs/hackbench is not the same"),
        ("jobs/programs/vmstat/run", "programs/vmstat is not the same"),
    ],
)
def test_a_difference_in_what_is_measured_is_named(master: Path, name: str, expected: str) -> None:
    worker = copy(master)
    (worker / name).write_text("something else\n")
    assert expected in (difference(master, worker) or "")


def test_what_does_not_touch_the_measurement_may_differ(master: Path) -> None:
    worker = copy(master)
    for name in (
        "jobs/programs/hackbench/parse.py",
        "jobs/programs/hackbench/samples/one.raw",
        "jobs/programs/netperf/run",
        "workers/testboxes/other.yaml",
    ):
        (worker / name).write_text("something else\n")
    assert difference(master, worker) is None


def test_a_program_that_can_no_longer_be_run_is_another_one(master: Path) -> None:
    worker = copy(master)
    (master / "jobs/programs/hackbench/run").chmod(0o755)
    assert "programs/hackbench is not the same" in (difference(master, worker) or "")


def test_an_added_file_and_a_missing_program_are_reported(master: Path) -> None:
    worker = copy(master)
    (worker / "jobs/programs/hackbench/more").write_text("")
    shutil.rmtree(worker / "jobs/programs/vmstat")
    assert "programs/hackbench, programs/vmstat are not the same" in (
        difference(master, worker) or ""
    )
    (worker / "jobs/programs/hackbench/more").unlink()
    assert "programs/vmstat is missing on this worker's host" in (difference(master, worker) or "")


def test_a_kernel_configuration_that_is_another_text_is_not_built(tmp_path: Path) -> None:
    order = {"kind": "build", "kernel": {"kconfig": "tiny+slub"}}
    for host in ("master", "worker"):
        (tmp_path / host / "kconfig" / "fragments").mkdir(parents=True)
        (tmp_path / host / "kconfig" / "tiny.config").write_text("CONFIG_SMP=y\n")
        (tmp_path / host / "kconfig" / "fragments" / "slub.config").write_text("CONFIG_SLUB=y\n")
    order["alike"] = input_digests.of_order(order, tmp_path, tmp_path / "master")
    assert input_digests.difference(order, tmp_path, tmp_path / "worker") is None
    fragment = tmp_path / "worker" / "kconfig" / "fragments" / "slub.config"
    fragment.write_text("CONFIG_SLUB=y\nCONFIG_DEBUG=y\n")
    assert "kconfig/tiny+slub is not the same" in (
        input_digests.difference(order, tmp_path, tmp_path / "worker") or ""
    )
    fragment.unlink()
    assert "kconfig/tiny+slub is missing" in (
        input_digests.difference(order, tmp_path, tmp_path / "worker") or ""
    )


def test_orders_by_hand_ask_for_no_likeness(tmp_path: Path) -> None:
    assert input_digests.difference(ORDER, tmp_path, tmp_path) is None
