"""The memory of a freshly booted machine, stored next to its disk, so that later ones need not
boot before they are of use.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from swingbot_worker import lease
from tests.lab.image import Image
from tests.lab.machine import Machine, MachineError, free_port, tell_qemu

# What systemd still does once SSH answers should not fall into a test.
SETTLE_SECONDS = 5.0


def warm_up(made: Image) -> None:
    """Boot once from `made` and keep disk and memory, unless that was done before."""
    if made.state.exists():
        return
    with lease.cache_entry(made.state, patience=1800.0):
        if not made.state.exists():
            with tempfile.TemporaryDirectory(dir=made.folder, prefix="warm-") as scratch:
                _keep(made, Path(scratch))


def _keep(made: Image, folder: Path) -> None:
    about = {
        "port": free_port(),
        "smp": 2,
        "memory_mb": 2048,
        "threads": "single",
        "cmdline": "",
        "extra": [],
    }
    machine = Machine.of_disk(folder, made, about, made.disk, None)
    try:
        machine.start()
        _idle(machine)
        time.sleep(SETTLE_SECONDS)
        machine.ssh("sync; echo 3 >/proc/sys/vm/drop_caches")
        # Not stopped before: a stopped machine would be stored.
        state = folder / "state"
        tell_qemu(folder, "migrate", uri=f"exec:cat >'{state}'")
        while (status := tell_qemu(folder, "query-migrate")["status"]) != "completed":
            if status == "failed":
                raise MachineError("QEMU could not keep the machine's memory")
            time.sleep(0.2)
    finally:
        machine.stop()
    shutil.move(folder / "disk.raw", made.warm)
    shutil.move(state, made.state)


def _idle(machine: Machine) -> None:
    """Wait until systemd has started all that it starts at boot."""
    give_up = time.monotonic() + 200
    while (
        "running" not in machine.ssh("systemctl is-system-running --wait || true")
        and time.monotonic() < give_up
    ):
        if "degraded" in machine.ssh("systemctl is-system-running || true"):
            return
