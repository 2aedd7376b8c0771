"""Build a hostile commit behind the walls of this host, on a fake kernel tree."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from swingbot_jobs.contract.orders import check_order
from swingbot_jobs.contract.trust import Trust
from swingbot_worker import kbuild
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site
from swingbot_worker.walls import guard
from swingbot_worker.walls.cgroup import ControlGroup, Excess
from tests.attack.target import Result
from tests.builds.test_hostile_patches import hostile, left_running, said
from tests.fakelinux import make_fakelinux

SECONDS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """The outcome of a hostile build, its own words, and its peaks in bytes."""

    status: str
    reason: str
    said: list[str]
    memory: int
    disk: int
    log: str
    image: str
    left: int  # processes that outlived it

    def words(self) -> str:
        """Return the outcome in one line, with the peaks in MB."""
        peaks = f"{self.memory >> 20} MB of memory, {self.disk >> 20} MB of disk"
        return f"{self.status} with {peaks} ({self.reason or ', '.join(self.said)})"


@dataclass(frozen=True, slots=True)
class Builds:
    """A worker's site and a fake kernel repository, in a directory of their own."""

    place: Path
    site: Site

    @property
    def repo(self) -> Path:
        return self.place / "linux"

    def build(self, commit: str, *, trust: Trust = "untrusted", tree: str = "t1") -> Attacked:
        """Build `commit` of a kernel tree, with the limits in the environment."""
        order = kbuild.order_by_hand(
            self.site,
            repo=str(self.repo),
            commit=commit,
            kconfig="tiny",
            compiler="gcc",
            layout=0,
            trust=trust,
        )
        order["kernel"]["tree"] = tree
        checked = BuildOrder.from_json(check_order({**order, "deadline_seconds": SECONDS}))
        out = self.place / "out"
        with _peaks(self.place) as peaks:
            outcome = kbuild.build(checked, out, self.site)
        log = out / "build.log"
        return Attacked(
            status=outcome["status"],
            reason=outcome["reason"] or "",
            said=said(out) if log.exists() else [],
            memory=peaks["memory"],
            disk=peaks["disk"],
            log=log.read_text(errors="replace") if log.exists() else "",
            image=outcome.get("kernel_build", {}).get("image_sha256", ""),
            left=len(left_running(self.place)),
        )


@contextmanager
def builds(settings: Mapping[str, str] | None = None) -> Iterator[Builds]:
    """Yield a site and a repository; `settings` are variables of the worker."""
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
        with mock.patch.dict(os.environ, dict(settings or {})):
            yield Builds(place, site)


def attack(
    script: str,
    *,
    after: str = "",
    python: str = "",
    settings: Mapping[str, str] | None = None,
    trust: Trust = "untrusted",
) -> Attacked:
    """Build a commit whose Makefile runs `script` first and `after` at the end, with `python`
    beside them as a.py.
    """
    with builds(settings) as here:
        commit = hostile(here.repo, script, after=after, files={"a.py": python})
        return here.build(commit, trust=trust)


def stopped(
    attacked: Attacked, setting: str, *, memory_mb: int = 1 << 20, disk_mb: int = 1 << 20
) -> Result:
    """Return the result of an attack that should end as a stopped build that names `setting`, with
    peaks below those given, and with all that it started.
    """
    held = attacked.status == "infra" and setting in attacked.reason
    small = attacked.memory >> 20 <= memory_mb and attacked.disk >> 20 <= disk_mb
    return Result(held=held and small and not attacked.left, line=attacked.words())


@contextmanager
def _peaks(place: Path) -> Iterator[dict[str, int]]:
    """Record the peaks of the build: the memory of its cgroup as the kernel counts it, and the
    disk space below `place`, the image of its own file system included.
    """
    peaks, stop = {"memory": 0, "disk": 0}, threading.Event()
    excess, before = ControlGroup.excess, _used(place)

    def noted(group: ControlGroup) -> Excess:
        peaks["memory"] = max(peaks["memory"], group.peak() or 0)
        return excess(group)

    def watch() -> None:
        while not stop.wait(0.1):
            peaks["disk"] = max(peaks["disk"], _used(place) - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        with mock.patch.object(ControlGroup, "excess", noted):
            yield peaks
    finally:
        stop.set()
        thread.join()


def _used(place: Path) -> int:
    """Return the bytes on disk below `place`."""
    return guard.room(place)[0] or 0
