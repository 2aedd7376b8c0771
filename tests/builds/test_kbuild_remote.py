"""A repository that is a URL, behind a real git daemon."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot_worker import InfraError, kbuild
from swingbot_worker.order import BuildOrder
from tests.buildbot.ports import free_ports
from tests.builds.test_kbuild import build, make_site
from tests.fakelinux import FakeCommit, make_fakelinux, speed_of


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    port = free_ports(1)
    served = tmp_path / "served"
    served.mkdir()
    argv = [
        "git",
        "daemon",
        "--export-all",
        "--reuseaddr",
        f"--base-path={served}",
        "--listen=127.0.0.1",
        f"--port={port}",
        str(served),
    ]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        _wait_for(port)
        yield f"git://127.0.0.1:{port}"
        process.terminate()


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("git daemon does not listen")


def test_a_commit_is_fetched_once_from_a_remote(tmp_path: Path, daemon: str) -> None:
    ids = make_fakelinux(
        tmp_path / "served" / "linux", [FakeCommit(speed=80), FakeCommit(speed=60)]
    )
    site = make_site(tmp_path, "cache")
    outcome = build(site, f"{daemon}/linux", ids[1], tmp_path / "out")
    assert outcome["status"] == "built", outcome["reason"]
    assert speed_of((tmp_path / "out" / "bzImage").read_bytes()) == 80
    order = kbuild.order_by_hand(
        site, repo=f"{daemon}/linux", commit="main", kconfig="tiny", compiler="gcc", layout=0
    )
    assert order["kernel"]["commit"] == ids[2]
    shutil.rmtree(tmp_path / "served" / "linux")
    assert build(site, f"{daemon}/linux", ids[1], tmp_path / "out")["kernel_build"]["cached"]


def test_a_remote_out_of_reach_is_infra(tmp_path: Path, daemon: str) -> None:
    site = make_site(tmp_path, "cache")
    kernel = {
        "build_key": "0" * 64,
        "repo": f"{daemon}/gone",
        "commit": "1" * 40,
        "kconfig": "tiny",
        "compiler": "gcc",
        "layout": 0,
    }
    order = {"version": 1, "kind": "build", "order": "o1", "attempt": "a1", "kernel": kernel}
    outcome = kbuild.build(BuildOrder.from_json(order), tmp_path / "out", site)
    assert outcome["status"] == "infra" and f"cannot fetch from {daemon}/gone" in outcome["reason"]
    with pytest.raises(InfraError, match="Cannot find tag or branch 'main'"):
        kbuild.order_by_hand(
            site, repo=f"{daemon}/gone", commit="main", kconfig="tiny", compiler="gcc", layout=0
        )
