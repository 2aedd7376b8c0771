"""Bare-metal testboxes for tests: a machine, its testbox file, and orders for it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swingbot_worker.site import Site, from_environment
from tests.contract.labs import PROGRAMS, ROOT, Lab, programs_in
from tests.lab.machine import Machine

SHIPPED = ("hackbench", "netperf", "page-fault")
# A complete boot of Debian, next to other load on the host.
RETURN_SECONDS = 1500
CMDLINE = "console=ttyS0 norandmaps mitigations=off"
MORE = {"sleeps": "sleep 20; echo slept\n"}


@dataclass(kw_only=True)
class Iron:
    """One testbox on one machine; `phases` are those that the last order reported."""

    machine: Machine
    site: Site
    image: Path
    out: Path
    phases: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of its own, so that tests beside each other do not wait for each other's testbox."""
        return f"iron-{self.machine.port}"

    @property
    def file(self) -> Path:
        return self.site.workers / "testboxes" / f"{self.name}.yaml"

    def describe(self, more: Mapping[str, Any] | None = None, **ssh: Any) -> None:
        """Write the testbox file: this machine, entered by kexec.

        `ssh` and `more` change or add keys of the table `ssh` and of the file.
        """
        switch = {
            name: self.machine.power_command(name) for name in ("on", "off", "cycle", "status")
        }
        how = {
            "host": "127.0.0.1",
            "port": self.machine.port,
            "key": str(self.machine.key),
            "known_hosts": str(self.machine.known_hosts),
            "enter": "kexec",
            "console": {"command": self.machine.console_command},
            "power": switch,
            "panic_seconds": 2,
            "return_seconds": RETURN_SECONDS,
            "idle_release": "6.1.0-*-amd64",
            **ssh,
        }
        testbox = {
            "name": self.name,
            "tbox_group": "iron",
            "driver": "ssh",
            "model": "a Debian machine in QEMU",
            "nr_cpu": 2,
            "memory_mb": 2048,
        }
        testbox |= {"boot_seconds": 120, "cmdline": CMDLINE, "ssh": how, **(more or {})}
        self.file.write_text(json.dumps(testbox))

    def by_reboot(self, more: Mapping[str, Any] | None = None) -> None:
        """The same, but entered by a whole reboot: the boot server is given the kernel once,
        and the machine takes it at its next start.
        """
        self.describe(
            more,
            enter="reboot",
            reboot_where="controller",
            reboot_command=self.machine.command("netboot", "{kernel}", "{initrd}", "{cmdline}"),
        )

    def boot(self, *jobs: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """The outcome of an order with these unit jobs."""
        lab = Lab(
            site=self.site, testbox=self.name, image=self.image, out=self.out, phases=self.phases
        )
        return lab.boot(jobs, **{"k": 0, **more})

    def log(self) -> str:
        path = self.out / "driver.log"
        return path.read_text() if path.exists() else ""

    def meanwhile(self, text: str, act: Callable[[], object]) -> threading.Thread:
        """Do `act` as soon as the console shows `text` again."""
        start = self.machine.console_log.stat().st_size

        def wait() -> None:
            give_up = time.monotonic() + 1200
            while time.monotonic() < give_up:
                with self.machine.console_log.open("rb") as file:
                    file.seek(start)
                    if text.encode() in file.read():
                        act()
                        return
                time.sleep(0.2)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread


def iron(folder: Path, machine: Machine, image: Path) -> Iron:
    """A lab in `folder` with one testbox on `machine`; caches are the host's own."""
    workers, jobs = folder / "workers", programs_in(folder / "jobs", PROGRAMS | MORE)
    (workers / "testboxes").mkdir(parents=True)
    for name in ("rootfs", "tuning"):
        (workers / name).symlink_to(ROOT / "workers" / name)
    for name in SHIPPED:
        (jobs / "programs" / name).symlink_to(ROOT / "jobs" / "programs" / name)
    site = Site(
        cache=from_environment().cache, workers=workers, jobs=jobs, benchmarks=None, make_jobs=1
    )
    made = Iron(machine=machine, site=site, image=image, out=folder / "out")
    made.describe()
    return made
