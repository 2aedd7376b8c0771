"""A cluster for tests: the shipped one, a kernel with the driver of its cards,
and programs that provoke one of its ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from swingbot_worker import InfraError, lease
from swingbot_worker.site import Site
from tests.boot.lab import virtual_lab
from tests.contract.labs import PROGRAMS, ROOT, Lab, a_job

RR: dict[str, Any] = a_job(
    "netperf", runs=2, cluster="cs-vm", test="TCP_RR", ip="ipv4", nr_threads="1", runtime="1"
)
PANIC = PROGRAMS["panics"]
# `serve` and `client` of programs that provoke one of the two kernels, or the wire.
PROVOKING = {
    "server-panics": (PANIC + " &\n", "sleep 60\n"),
    "client-panics": ("exit 0\n", PANIC),
    "unplugs": (
        "exit 0\n",
        "for card in /sys/class/net/e*; do ip link set ${card##*/} down; done; echo unplugged\n",
    ),
    "refuses": ("echo no port is free; exit 1\n", "echo never\n"),
}


def wired_lab(folder: Path, image: Path, *, boot_seconds: float = 10) -> Lab:
    """The shipped cluster, and programs with a part for each of its ends."""
    lab = virtual_lab(folder, image, testbox="vm-tcg")
    shipped = (ROOT / "workers" / "testboxes" / "cs-vm.yaml").read_text()
    (lab.site.workers / "testboxes" / "cs-vm.yaml").write_text(
        shipped.replace("boot_seconds: 10", f"boot_seconds: {boot_seconds}")
    )
    for name, parts in PROVOKING.items():
        program = lab.site.jobs / "programs" / name
        program.mkdir()
        (program / "meta.yaml").write_text("kind: benchmark\nscope: micro\ndescribe: a test\n")
        for part, text in zip(("run", "serve", "client"), ("exit 1\n", *parts), strict=True):
            (program / part).write_text(f"#!/bin/sh\n{text}")
            (program / part).chmod(0o755)
    return Lab(site=lab.site, testbox="cs-vm", image=image, out=lab.out)


def leased(site: Site, name: str) -> bool:
    """Whether somebody boots it now."""
    try:
        with lease.for_testboxes(site.cache, [name], patience=-1.0):
            return False
    except InfraError:
        return True


def ends_both(lab: Lab, program: str, status: str, says: str) -> None:
    """A boot with this provoking program ends with `status` and a reason that has `says` in it,
    and both testboxes are free again.
    """
    outcome = lab.boot([a_job(program, cluster="cs-vm")])
    assert (outcome["status"], says in str(outcome["reason"])) == (status, True), outcome["reason"]
    assert not leased(lab.site, "vm-tcg")
