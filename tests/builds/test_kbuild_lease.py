"""Builds and boots that need the host alone keep out of each other's way."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from swingbot_worker import kbuild, lease
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site
from tests.fakelinux import make_fakelinux

WORKERS = Path(__file__).parents[2] / "workers"


def test_a_build_waits_for_a_boot_that_has_the_host_to_itself(tmp_path: Path) -> None:
    site = Site(
        cache=tmp_path / "cache",
        workers=WORKERS,
        jobs=WORKERS.parent / "jobs",
        benchmarks=None,
        make_jobs=1,
    )
    site.cache.mkdir()
    commit = make_fakelinux(tmp_path / "linux", 0)[0]
    order = kbuild.order_by_hand(
        site,
        repo=str(tmp_path / "linux"),
        commit=commit,
        kconfig="vm-x86_64",
        compiler="gcc",
        layout=0,
    )
    built = threading.Thread(
        target=kbuild.build, args=(BuildOrder.from_json(order), tmp_path / "out", site)
    )
    with lease.exclusive(site.cache):
        built.start()
        built.join(2)
        assert built.is_alive()
        assert not (tmp_path / "out" / "bzImage").exists()
        let_go = time.monotonic()
    built.join(60)
    assert (tmp_path / "out" / "bzImage").stat().st_mtime > time.time() - (
        time.monotonic() - let_go
    )
