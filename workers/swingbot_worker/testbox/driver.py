"""What every driver promises, what it is asked and what it answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker.rootfs import Rootfs
from swingbot_worker.rootfs.cpio import Entry
from swingbot_worker.site import Site
from swingbot_worker.testbox.kernel import Kernel
from swingbot_worker.testbox.limits import Limits
from swingbot_worker.testbox.verdict import Verdict

Fact = str | int | float | bool | None
Tell = Callable[[str], None]
# (phase, why): phase is one of swingbot_jobs.contract.orders.PHASES. Never raises, and costs a few seconds at most when nobody listens.
TellPhase = Callable[[str, str], None]
# Boots in a row that may be spoilt by the driver's own machine before we give up.
SPOILT_BOOTS = 3
# What a boot leaves in its directory; of a cluster these are the client's.
FILES = (
    "console.log",
    "results.tar",
    "qemu.log",
    "driver.log",
    "job.sh",
    "job.cpio",
    "qemu.json",
    "rootfs.json",
)


class MachineFault(InfraError):
    """The machine that a driver makes tripped over itself; the boot says nothing about the kernel and may be made again."""


def tell_nobody(phase: str, why: str) -> None:
    """For boots by hand: there is no service that keeps the state of the box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What has to run on the testbox. `built_from`: commit, kconfig and compiler of the kernel, as far as they are known."""

    unit_jobs: Sequence[UnitJob]
    built_from: Mapping[str, str]
    site: Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What a testbox is given to run the job. `script` is for people: all that will run, as text."""

    script: bytes
    entries: Sequence[Entry] = ()  # the job's files, their script first
    rootfs: Rootfs | None = None  # None: the testbox brings its own system
    parts: Mapping[str, Payload] = field(default_factory=dict)  # of a cluster, by role

    @property
    def system(self) -> Rootfs:
        """The root file system of a guest, which has nothing else."""
        assert self.rootfs is not None
        return self.rootfs


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What is different for a testbox that is booted together with another one, as a node of a cluster."""

    devices: Sequence[str] = ()  # of a virtual machine: more arguments for QEMU
    # Called when all is looked at and nothing has begun: waits for the other one; raises InfraError if that one cannot begin.
    ready: Callable[[], None] = lambda: None
    given_up: Callable[[], str | None] = lambda: None  # why nobody waits for this box any more
    spoilt_boots: int = SPOILT_BOOTS  # a node alone does not boot again: both do


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One boot, everything looked up and made. The driver writes `console` and `results`, and what else it has into `out`."""

    order: str
    attempt: str
    kernel: Kernel
    k: int  # this is the k-th boot of this kernel for `purpose`: both pick the perturbation
    purpose: str
    payload: Payload
    limits: Limits
    lease: Callable[[], AbstractContextManager[Sequence[int]]]  # waits until the testbox is free
    out: Path
    cache: Path
    tell: Tell
    tell_phase: TellPhase = tell_nobody  # outside of the measured window only
    node: Node = field(default_factory=Node)
    document: Mapping[str, object] = field(default_factory=dict)  # the order, without its token
    cmdline: str = ""  # the job's words, which go behind the testbox's own

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


class Driver(Protocol):
    """One way to boot a testbox. Each driver is made for one testbox by `choose.driver_of`, and passes tests/contract/test_testbox.py."""

    def payload(self, job: Job) -> Payload:
        """What the testbox is given to run `job`. Touches no testbox. Raises InfraError with what to install or to order instead."""

    def boot(self, request: Request) -> Boot:
        """Boot the kernel once, run the payload in it, and bring its console and results.

        Whatever the kernel does is a verdict. Raises InfraError for whatever is ours, OrderError if no attempt at this order can succeed here.
        Either way the testbox is back where it can be leased again, or the phase `lost` was told. The lease is held from before the first
        phase until after the last one.
        """

    def check(self) -> list[TuningFinding]:
        """Whether the testbox has what it needs, and what to do where it has not. Changes nothing on it and boots nothing."""


def held_already(locks: Sequence[int]) -> Callable[[], AbstractContextManager[Sequence[int]]]:
    """The lease of a request whose testbox is leased already."""
    return lambda: contextlib.nullcontext(locks)
