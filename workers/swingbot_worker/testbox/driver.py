"""The interface of drivers: protocol, requests and results."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.limits import RESULT_ARCHIVE_BYTES
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError
from swingbot_worker import limits as worker_limits
from swingbot_worker.rootfs import Rootfs
from swingbot_worker.rootfs.cpio import Entry
from swingbot_worker.site import Site
from swingbot_worker.testbox.fence import NO_FENCE, Fence
from swingbot_worker.testbox.kernel import Kernel
from swingbot_worker.testbox.limits import BootLimits
from swingbot_worker.testbox.verdict import Verdict

Fact = str | int | float | bool | None
Tell = Callable[[str], None]
# (phase, why): phase is one of swingbot_jobs.contract.orders.PHASES. Never raises, and takes at
# most a few seconds if the service is unavailable.
TellPhase = Callable[[str, str], None]
# Consecutive boots that faults of the emulated machine may invalidate before the order fails.
SPOILT_BOOTS = 3
# Files of a boot in its directory; for a cluster, those of the client.
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
LOGS = ("console.log", "qemu.log", "driver.log")


class MachineFault(InfraError):
    """The emulated machine failed; the boot says nothing about the kernel and may be repeated."""


def ignore_phases(phase: str, why: str) -> None:
    """Ignore phases, for boots by hand, where no service tracks the testbox's state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The job to run. `built_from` has the known ones of commit, kconfig and compiler."""

    unit_jobs: Sequence[UnitJob]
    built_from: Mapping[str, str]
    site: Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """The files that a testbox gets to run a job. `script` is all of it as text, for people."""

    script: bytes
    entries: Sequence[Entry] = ()  # the job's files, their script first
    rootfs: Rootfs | None = None  # None: the testbox brings its own system
    parts: Mapping[str, Payload] = field(default_factory=dict)  # of a cluster, by role

    @property
    def system(self) -> Rootfs:
        """The root file system of a guest."""
        assert self.rootfs is not None
        return self.rootfs


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Additional parameters of a testbox that is booted as a node of a cluster."""

    devices: Sequence[str] = ()  # of a virtual machine: more arguments for QEMU
    # Called after all checks and before the boot: waits for the other node; raises InfraError if
    # that node cannot start.
    ready: Callable[[], None] = lambda: None
    given_up: Callable[[], str | None] = lambda: None  # why this boot is no longer needed
    spoilt_boots: int = SPOILT_BOOTS  # both nodes are booted again together


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One boot with all inputs resolved.

    The driver writes `console`, `results` and its other files to `out`. What a guest can fill is
    read, stored and hashed up to its limit, whatever a driver left.
    """

    order: str
    attempt: str
    kernel: Kernel
    k: int  # this is the k-th boot of this kernel for `purpose`: both pick the perturbation
    purpose: str
    payload: Payload
    limits: BootLimits
    lease: Callable[[], AbstractContextManager[Sequence[int]]]  # waits until the testbox is free
    out: Path
    cache: Path
    tell: Tell
    tell_phase: TellPhase = ignore_phases  # outside of the measured window only
    fence: Fence = NO_FENCE  # asked before each command that powers or boots the testbox
    node: Node = field(default_factory=Node)
    document: Mapping[str, object] = field(default_factory=dict)  # the order, without its token
    cmdline: str = ""  # the job's words, appended to the testbox's own

    @property
    def console(self) -> Path:
        return self.out / "console.log"

    @property
    def results(self) -> Path:
        return self.out / "results.tar"

    def console_text(self) -> str:
        """Return the beginning of the console, which is its most informative part."""
        if not self.console.is_file():
            return ""
        with self.console.open("rb") as file:
            return file.read(worker_limits.CONSOLE_BYTES).decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """The verdict and the driver's facts; the guest's facts are in the results."""

    verdict: Verdict
    facts: Mapping[str, Fact] = field(default_factory=dict)


class Driver(Protocol):
    """A way to boot a testbox.

    `select_driver.driver_of` creates a driver for one testbox. Each driver passes
    tests/contract/test_testbox.py.
    """

    def payload(self, job: Job) -> Payload:
        """Return the files for `job` without contacting the testbox.

        Raises InfraError with the remedy.
        """

    def boot(self, request: Request) -> Boot:
        """Boot the kernel once, run the payload in it, and bring its console and results.

        The kernel's behaviour is a verdict. Raises InfraError for an infrastructure failure,
        OrderError if no attempt at this order can succeed on this testbox. In each case the testbox
        can be leased again afterwards, or the phase `lost` was reported. The lease is held from
        before the first phase until after the last one.
        """

    def check(self) -> list[TuningFinding]:
        """Check the testbox and return findings with remedies.

        Changes nothing and boots nothing.
        """


def cut_files(out: Path, names: Sequence[str]) -> None:
    """Truncate those of the files `names` in `out` that exceed their limit.

    Of the results, one byte above the limit is left, for which their reader refuses them.
    """
    for path in (out / name for name in names):
        if path.name.endswith(LOGS):
            most = worker_limits.CONSOLE_BYTES
        elif path.name.endswith("results.tar"):
            most = RESULT_ARCHIVE_BYTES + 1
        else:
            continue
        if path.is_file() and path.stat().st_size > most:
            os.truncate(path, most)


def held_already(locks: Sequence[int]) -> Callable[[], AbstractContextManager[Sequence[int]]]:
    """Return the lease of a request whose testbox is already leased."""
    return lambda: contextlib.nullcontext(locks)
