"""Builds that are killed at the worst moment: what they leave must not get into the next kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builds.test_kbuild import build, make_site
from tests.fakelinux import FakeCommit, make_fakelinux

HALF = "half-written\n"


def wait_until(what: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def start_slow_build(tmp_path: Path, commit: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a worker, and return while its make runs and an object is half-written."""
    command = [
        sys.executable,
        "-c",
        "from swingbot_worker.cli import main; main()",
        "build",
        "--repo",
        str(tmp_path / "linux"),
    ]
    env = {
        **os.environ,
        "SWINGBOT_PATHS_CACHE": str(tmp_path / "cache"),
        "SWINGBOT_PATHS_WORKERS": str(tmp_path / "workers"),
    }
    worker = subprocess.Popen(
        [*command, "--commit", commit, "--kconfig", "tiny", "--out", tmp_path / "out"],
        env=env,
        stderr=subprocess.DEVNULL,
    )
    objects = tmp_path / "cache" / "work" / "linux-0.1" / "src" / "o-tiny-gcc-0"
    half = objects / "mm" / "page_alloc.o"
    wait_until(lambda: half.exists() and half.read_bytes() == HALF.encode())
    return worker, objects


@pytest.mark.parametrize("victim", ["make", "worker", "worker, politely"])
def test_a_killed_build_is_repaired_by_the_next_one(tmp_path: Path, victim: str) -> None:
    site = make_site(tmp_path, "cache")
    ids = make_fakelinux(tmp_path / "linux", [FakeCommit(kind="slow"), FakeCommit()])
    build(site, tmp_path / "linux", ids[0], tmp_path / "out")
    worker, objects = start_slow_build(tmp_path, ids[1])
    (make,) = children(worker.pid)
    if victim == "make":
        os.killpg(make, signal.SIGKILL)
    else:
        worker.send_signal(signal.SIGKILL if victim == "worker" else signal.SIGTERM)
    assert worker.wait(timeout=20) != 0
    if victim == "make":
        assert (objects / "mm" / "page_alloc.o").read_text() == HALF, (
            "else this test proves nothing"
        )
    else:
        wait_until(lambda: not Path(f"/proc/{make}").exists())  # what we start ends with us
    outcome = build(site, tmp_path / "linux", ids[2], tmp_path / "out")
    clean = build(make_site(tmp_path, "clean"), tmp_path / "linux", ids[2], tmp_path / "clean-out")
    assert outcome["status"] == "built"
    assert outcome["kernel_build"]["image_sha256"] == clean["kernel_build"]["image_sha256"]
    assert not (objects / ".swingbot-unfinished").exists()
