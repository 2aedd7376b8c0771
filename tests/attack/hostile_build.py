"""Build a hostile commit behind the walls of this host, on a fake kernel tree."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from swingbot_jobs.contract.orders import check_order
from swingbot_worker import kbuild
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site
from tests.attack.target import Result
from tests.fakelinux import make_fakelinux
from tests.unit.test_hostile_patches import hostile, said

SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """The outcome of a hostile build, its own words, and what it took of the host, in bytes."""

    status: str
    reason: str
    said: list[str]
    memory: int
    disk: int
    log: str

    def words(self) -> str:
        """Return the outcome in one line, with the peaks in MB."""
        peaks = f"{self.memory >> 20} MB of memory, {self.disk >> 20} MB of disk"
        return f"{self.status} with {peaks} ({self.reason or ', '.join(self.said)})"


def attack(script: str, *, python: str = "", settings: Mapping[str, str] | None = None) -> Attacked:
    """Build an untrusted commit whose Makefile runs `script`, with `python` beside it as a.py."""
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        place = Path(directory)
        (place / "workers" / "kconfig").mkdir(parents=True)
        (place / "workers" / "kconfig" / "tiny.config").write_text("CONFIG_SMP=y\n")
        make_fakelinux(place / "linux", 0)
        site = Site(
            cache=place / "cache",
            workers=place / "workers",
            jobs=place / "jobs",
            benchmarks=None,
            make_jobs=2,
        )
        commit = hostile(place / "linux", script, files={"a.py": python})
        order = kbuild.order_by_hand(
            site,
            repo=str(place / "linux"),
            commit=commit,
            kconfig="tiny",
            compiler="gcc",
            layout=0,
            trust="untrusted",
        )
        checked = BuildOrder.from_json(check_order({**order, "deadline_seconds": SECONDS}))
        with mock.patch.dict(os.environ, dict(settings or {})), _peaks(place) as peaks:
            outcome = kbuild.build(checked, place / "out", site)
        log = place / "out" / "build.log"
        return Attacked(
            status=outcome["status"],
            reason=outcome["reason"] or "",
            said=said(place / "out") if log.exists() else [],
            memory=peaks["memory"],
            disk=peaks["disk"],
            log=log.read_text(errors="replace") if log.exists() else "",
        )


def stopped(attacked: Attacked, setting: str) -> Result:
    """Return the result of an attack that should end as a failed build that names `setting`."""
    held = attacked.status == "failed" and setting in attacked.reason
    return Result(held=held, line=attacked.words())


@contextmanager
def _peaks(place: Path) -> Iterator[dict[str, int]]:
    """Measure how far the host's free memory and disk fall; other work on the host counts too."""
    peaks, stop = {"memory": 0, "disk": 0}, threading.Event()
    memory, disk = _available(), shutil.disk_usage(place).free

    def watch() -> None:
        while not stop.is_set():
            peaks["memory"] = max(peaks["memory"], memory - _available())
            peaks["disk"] = max(peaks["disk"], disk - shutil.disk_usage(place).free)
            time.sleep(0.1)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


def _available() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo has no MemAvailable")
