"""A testbox: one measured machine, described by `workers/testboxes/<name>.yaml` (see file.py)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Final

from swingbot_jobs import limits
from swingbot_jobs.codec import Count, at_least, at_most, matches, one_of
from swingbot_jobs.contract import memory, settings
from swingbot_jobs.contract.orders import SEARCH
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.contract.unit_job import UnitJob, cmdline_of
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.table import AbsolutePath, words
from swingbot_jobs.testbox.tuning import Tuning
from swingbot_jobs.testbox.wire import IPV4, IPV6, LOCALHOST, ROLES

# One boot of the shipped VMs takes about 3 s of wall clock; limits are multiples of this.
DEFAULT_BOOT_SECONDS: Final = 10.0
# Boots of other purposes avoid the delays of this many search boots: a comparison of 1000 boots and
# its proof use fewer.
SEARCHED: Final = 2000
# Settings that a job may use, if the testbox supports them.
CMDLINE: Final = "cmdline"
SYSCTL: Final = "sysctl"
CAN_SET: Final = (CMDLINE, SYSCTL)
_COMMIT: Final = re.compile("[0-9a-f]{7,40}")
# What a guest writes to the disk of a virtual testbox is a file on the worker's host until it
# ends.
DISK_MB: Final = 65_536
# Attempts to draw an unused delay; if the range is used up, a delay of the search is repeated.
DRAWS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbations:
    """A seeded list of delays before the job, which make the boots of a repeatable testbox differ.

    `count` delays are spread evenly over (0, max_ms] milliseconds in an order given by `seed`;
    a list that is used up continues with other delays from the same range.
    Each purpose of boots has its own list, which repeats none of the first `SEARCHED` delays of the
    search as long as the range has others.
    """

    seed: Count
    count: Annotated[int, at_least(1)]
    max_ms: Annotated[int, at_least(1)]

    def __call__(self, k: int, purpose: str = SEARCH) -> int:
        """Return the k-th delay (k from 0) of boots of this purpose in microseconds, at least 1.

        Raises ValueError for k < 0.
        """
        if k < 0:
            raise ValueError(f"perturbation {k} does not exist: numbers start at 0")
        searched = self._delays(f"{self.seed}")
        if purpose == SEARCH:
            return searched(k, f"{k}")
        own, taken = (
            self._delays(f"{self.seed}:{purpose}"),
            {searched(other, f"{other}") for other in range(SEARCHED)},
        )
        drawn = (own(k, f"{k}:{again}") for again in range(DRAWS))
        return next((delay for delay in drawn if delay not in taken), own(k, f"{k}"))

    def _delays(self, seed: str) -> Callable[[int, str], int]:
        """Return delay k of the list of `seed`.

        The second argument chooses the position in its part of the range.
        """
        slots = sorted(range(self.count), key=lambda slot: _draw(f"slot:{seed}:{slot}"))
        step = self.max_ms * 1000 / self.count

        def delay(k: int, draw: str) -> int:
            return max(1, int((slots[k % self.count] + _draw(f"delay:{seed}:{draw}")) * step))

        return delay


def _draw(text: str) -> float:
    """Return a number in [0, 1) that depends on `text` alone: the same on every machine and Python
    version.
    """
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


@dataclass(frozen=True, slots=True, kw_only=True)
class QemuDriver:
    """Options with which QEMU is started.

    `icount_shift` N means 2^N virtual nanoseconds per instruction; icount testboxes have one vCPU.
    With `nr_node` of the testbox, the machine has that many NUMA nodes, each a socket with an equal
    share of processors and memory.
    """

    name: ClassVar[str] = "qemu"
    virtual: ClassVar[bool] = True

    accel: Annotated[str, one_of("icount", "tcg", "kvm")]
    icount_shift: Count = 3
    # Without erms and fsrm a `rep stosb` is one instruction per 64 bits and no longer hides the mm
    # code; rdrand and rdseed would add entropy of the host.
    cpu: str = "max,-erms,-fsrm,-rdrand,-rdseed"
    # uefi: OVMF loads the kernel through its EFI stub; each boot starts with fresh EFI variables
    firmware: Annotated[str, one_of("bios", "uefi")] = "bios"
    disk: Annotated[str, one_of("none", "nvme", "virtio")] = "none"  # empty at each boot
    disk_mb: Annotated[int, at_least(1), at_most(DISK_MB)] = 1024
    nic: Annotated[str, one_of("none", "e1000e", "virtio")] = "none"  # connected to nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDriver:
    """A program of the operator that boots the machine.

    See docs of `swingbot_worker.testbox.command`.
    """

    name: ClassVar[str] = "command"
    virtual: ClassVar[bool] = False

    argv: Annotated[tuple[str, ...], words]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDriver:
    """Two testboxes and their wire, all by role.

    A card is identified by its hardware address, or by its name in the kernel under test.
    """

    name: ClassVar[str] = "cluster"

    nodes: Mapping[str, Testbox]
    cards: Mapping[str, str]
    ipv4: Mapping[str, str] = field(default_factory=lambda: IPV4)  # with prefix length
    ipv6: Mapping[str, str] = field(default_factory=lambda: IPV6)
    kconfig_needed: tuple[str, ...] = ()  # options of the cards' drivers, which must be built in

    @property
    def testboxes(self) -> tuple[str, ...]:
        """Return the testboxes that must be free, each once, in the common lease order."""
        return tuple(sorted({node.name for node in self.nodes.values()}))

    @property
    def virtual(self) -> bool:
        """Return whether both are programs on the worker's host."""
        return all(node.virtual for node in self.nodes.values())

    def address(self, role: str, family: str = "ipv4") -> str:
        """Return the address without the prefix length."""
        return (self.ipv6 if family == "ipv6" else self.ipv4)[role].partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        """Return the facts that may be shown."""
        return {
            "nodes": {role: self.nodes[role].name for role in ROLES},
            "ipv4": dict(self.ipv4),
            "ipv6": dict(self.ipv6),
            "kconfig_needed": list(self.kconfig_needed),
        }


Driver = QemuDriver | CommandDriver | SshDriver | ClusterDriver


@dataclass(frozen=True, slots=True, kw_only=True)
class LkpEngine:
    """Unit jobs are run by an installed lkp-tests instead of by our own runner.

    `src` is its directory on the machine that runs the job.
    For a virtual testbox this is the worker's host, from which it is copied into the guest.
    `commit` is the required commit, abbreviated as git does; empty if any is accepted.
    """

    src: AbsolutePath
    commit: Annotated[str, matches(_COMMIT, "7 to 40 hex digits")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbox:
    """Facts of one testbox. Sizes in MiB, times in seconds of wall clock."""

    __test__ = False

    name: str
    tbox_group: str
    driver: Driver
    description: str
    model: str
    nr_cpu: int
    memory_mb: int
    nr_node: int | None = None  # NUMA nodes; None: not compared with what a kernel sees
    label: str = ""  # shown with its numbers
    # bit-identical results on a busy host: needs no host lease, and equal k means equal boots
    repeatable: bool = False
    perturbations: Perturbations | None = None
    boot_seconds: float = (
        DEFAULT_BOOT_SECONDS  # usual time of a boot without a job, for limits and estimates
    )
    # longest boot with its runs that may be requested; None: that of the lab
    longest_boot_seconds: float | None = None
    cmdline: str = ""  # added to the kernel command line
    # untrusted: boots any kernel, because it is discarded or cleaned afterwards
    accepts: Trust = "trusted"
    # required facts of all its boots, including those of the tuning list
    demand: Mapping[str, str] = field(default_factory=dict)
    tuning: Tuning | None = None  # settings that reduce noise
    lkp: LkpEngine | None = None  # set where the engine is lkp
    can_set: tuple[str, ...] = CAN_SET  # what a job may set for its boots here
    kconfig: str = ""  # configuration of its kernels, below the fragments of a tree; "": the tree's

    @property
    def engine(self) -> str:
        """Return the engine that runs the unit jobs after the driver has booted it."""
        return "lkp" if self.lkp else "swingbot"

    @property
    def virtual(self) -> bool:
        """Return whether it is a program on the worker's host."""
        return self.driver.virtual

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the testboxes of a cluster, in the order in which they are leased.

        Empty for others.
        """
        return self.driver.testboxes if isinstance(self.driver, ClusterDriver) else ()

    @property
    def cluster(self) -> str:
        """Return the required value of a job's `cluster`."""
        return self.tbox_group if isinstance(self.driver, ClusterDriver) else LOCALHOST

    def perturbation(self, k: int, purpose: str = SEARCH) -> int:
        """Return the delay before the job of the k-th boot of this purpose in microseconds.

        0 on a testbox without perturbation.
        """
        return self.perturbations(k, purpose) if self.perturbations else 0

    def demanded(self, unit_jobs: Iterable[UnitJob]) -> list[UnitJob]:
        """Return the unit jobs with the testbox's demands.

        A job's own value of a fact takes precedence.

        A job gives a value with a demand, or with a sysctl that it sets.
        """
        return [
            replace(job, demand=dict(sorted({**self._demand_of(job), **job.demand}.items())))
            if self.demand
            else job
            for job in unit_jobs
        ]

    def _demand_of(self, job: UnitJob) -> Mapping[str, str]:
        return {name: wanted for name, wanted in self.demand.items() if name not in job.sysctl}

    def check_settings(self, unit_jobs: Sequence[UnitJob], trust: Trust) -> None:
        """Refuse settings of a boot's unit jobs that this testbox does not support or a job may not
        use.

        `trust` is that of the kernel to boot. Raises ValueError with advice.
        """
        self._check_memory(unit_jobs)
        cmdline = cmdline_of(unit_jobs)
        for what, sets in (
            (CMDLINE, "kernel_cmdline" if cmdline else ""),
            (SYSCTL, "sysctl" if any(job.sysctl for job in unit_jobs) else ""),
        ):
            if sets and what not in self.can_set:
                raise ValueError(
                    f"testbox {self.name} can't set what the job requests with {sets} (can_set in"
                    " its file, and what its driver and engine can); use another testbox, or"
                    " remove it"
                )
        settings.check_words(cmdline, trust)
        for job in unit_jobs:
            settings.check_sysctls(job.sysctl, trust)
        if cmdline:
            usual = " " * limits.DRIVER_CHARACTERS
            settings.check_length(settings.joined(usual, self.longest_cmdline, cmdline))

    def _check_memory(self, unit_jobs: Sequence[UnitJob]) -> None:
        """Refuse a limit or a swap area that this testbox cannot give. Raises ValueError."""
        asked = {
            name: value for job in unit_jobs for name, value in memory.asked(job.params).items()
        }
        if asked and self.engine != "swingbot":
            raise ValueError(
                f"testbox {self.name} runs jobs with {self.engine}, which does not support"
                f" {' or '.join(sorted(asked))}; use another testbox, or remove it"
            )
        disk = self.driver.disk if isinstance(self.driver, QemuDriver) else "none"
        if any(job.params.get(memory.SWAP) == "disk" for job in unit_jobs) and disk != "virtio":
            raise ValueError(
                f"testbox {self.name} has no disk to swap to; use swap: zram, or a virtual testbox"
                " with disk: virtio in its file"
            )
        for job in unit_jobs:
            self._check_places(job)

    def _check_places(self, job: UnitJob) -> None:
        """Refuse processors, nodes and huge pages that this testbox lacks. Raises ValueError."""
        files = memory.limits(job.params)
        for file, has, what in (
            ("cpuset.cpus", self.nr_cpu, "processor"),
            ("cpuset.mems", self.nr_node or 1, "node"),
        ):
            if lacking := sorted(memory.numbers(files.get(file, "")) - set(range(has))):
                raise ValueError(
                    f"testbox {self.name} has no {what} {lacking[0]}, which unit job {job.name}"
                    f" asks for: it has {has}, numbered from 0"
                )
        pages = job.params.get(memory.HUGEPAGES, "0")
        mebibytes = int(pages) * memory.HUGEPAGE >> 20
        if mebibytes >= self.memory_mb:
            raise ValueError(
                f"the {pages} huge pages of unit job {job.name}, {mebibytes} MiB, do not fit into"
                f" the {self.memory_mb} MiB of testbox {self.name}"
            )

    @property
    def longest_cmdline(self) -> str:
        """Return the longest of the command lines that the files of its machines add."""
        nodes = self.driver.nodes.values() if isinstance(self.driver, ClusterDriver) else ()
        return max((self.cmdline, *(node.cmdline for node in nodes)), key=len)

    def to_json(self) -> dict[str, Any]:
        """Return the facts as stored and shown, flat enough for SQL.

        `driver` is the driver's name.
        """
        undriven = replace(self, driver=CommandDriver(argv=()))  # a cluster's holds two testboxes
        return asdict(undriven) | {
            "driver": self.driver.name,
            "engine": self.engine,
            self.driver.name: self.driver.to_json()
            if isinstance(self.driver, SshDriver | ClusterDriver)
            else asdict(self.driver),
            "tuning": self.tuning.name if self.tuning else None,
            "tuning_without": [item.name for item in self.tuning.left_out] if self.tuning else [],
        }


_REMEMBERED: Final = tuple(
    one.name
    for one in fields(Testbox)
    if one.name
    not in (
        "driver",
        "perturbations",
        "tuning",
        "lkp",
        "longest_boot_seconds",
        "nr_node",
        "kconfig",
    )
)


def remembered(facts: Mapping[str, Any]) -> Testbox:
    """Return a testbox from `to_json`, as comparisons and bisections need it.

    It lacks a driver, so it cannot be booted, and its limits and its kernel configuration, which
    only requests need.

    Raises KeyError if these are not such facts.
    """
    stored = {name: facts[name] for name in _REMEMBERED} | {"can_set": tuple(facts["can_set"])}
    return Testbox(driver=CommandDriver(argv=()), **stored)
