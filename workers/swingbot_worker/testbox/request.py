"""What a driver is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.box import Testbox
from swingbot_worker import engine
from swingbot_worker.rootfs.cpio import Entry
from swingbot_worker.site import Site
from swingbot_worker.testbox.limits import Limits
from swingbot_worker.testbox.verdict import Verdict

Fact = str | int | float | bool | None
# (phase, why): phase is one of swingbot_jobs.contract.orders.PHASES. Never raises, and costs a few seconds at most when nobody listens.
TellPhase = Callable[[str, str], None]


def tell_nobody(phase: str, why: str) -> None:
    """For boots by hand: there is no service that keeps the state of the box."""


def alone() -> None:
    """A box that has no other one to wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What is different for a box that is booted together with another one, as a node of a cluster."""

    entries: Sequence[Entry]  # its own job files
    locks: Sequence[int]  # the leases, which the cluster holds for both
    devices: Sequence[str] = ()  # of a virtual machine: more arguments for QEMU
    ready: Callable[[], None] = (
        alone  # called when all is looked at and nothing has begun: waits for the other; raises InfraError if that one cannot begin
    )
    given_up: Callable[[], str | None] = lambda: None  # why nobody waits for this box any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One boot, everything looked up and checked. The driver writes `console` and `results`, and what else it has into `out`."""

    box: Testbox
    image: Path
    k: int
    purpose: str
    unit_jobs: Sequence[UnitJob]
    limits: Limits
    patience: float  # seconds to wait for a lease
    out: Path
    site: Site
    order: Mapping[str, object]
    tell: Callable[[str], None]
    tell_phase: TellPhase = tell_nobody  # outside of the measured window only
    node: Node | None = None

    def job_entries(self, *, alone: bool) -> list[Entry]:
        """What the job adds to the root file system, or what is laid before the operator's driver. `alone`: in a guest of its own."""
        if self.node is not None:
            return list(self.node.entries)
        kernel = cast("Mapping[str, object]", self.order.get("kernel", {}))
        return engine.job_entries(self.box, self.unit_jobs, self.site, kernel, alone=alone)

    @property
    def delay_us(self) -> int:
        """The perturbation: how long the guest waits before the job."""
        return self.box.perturbation(self.k, self.purpose)

    @property
    def console(self) -> Path:
        return self.out / "console.log"

    @property
    def results(self) -> Path:
        return self.out / "results.tar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """How it went, and facts that the driver knows of; the guest's own come in the results."""

    verdict: Verdict
    facts: Mapping[str, Fact] = field(default_factory=dict)
