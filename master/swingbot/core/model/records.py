"""Stored entities as frozen records: one class per noun, fields named as in the database.

Commits are 40 hex digits, times are in seconds, ids are plain numbers (the letter is added for
output).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from swingbot.core.model.bisection import BisectionTerms
from swingbot.core.model.statuses import (
    OVER,
    AttemptState,
    BisectionStatus,
    ChangeKind,
    ComparisonKind,
    ComparisonStatus,
    Direction,
    DispatchState,
    OrderState,
    Reference,
    RequestOrigin,
    SteerAct,
    SwingSource,
    SwingState,
)
from swingbot_jobs.contract.orders import SEARCH, BootOutcome, BuildStatus, OrderKind
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.reading.result import RunStatus

UNBUILT: Final = (
    "does not build"  # prefix of the reason of anything not booted for lack of a kernel
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """A commit as git shows it."""

    commit: str
    tree_hash: str
    parents: tuple[str, ...]
    subject: str
    author: str
    made_here: bool = False  # by swingbot from a patch or a revert, or sent by a person
    posted: str = ""  # Message-ID of its mail, with <>; empty if unknown
    # Patch-ids of what was made here up to it, oldest first, its own last; "" is a commit without.
    patches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """A job file as of the registration of its tree or comparison; later edits have no effect."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    id: int
    name: str
    url: str
    branch: str
    base_commit: str
    tip_commit: str | None
    job_files: tuple[JobFile, ...]
    testboxes: tuple[str, ...]
    paths: tuple[str, ...]
    kconfig: str
    compiler: str
    trust: Trust = "trusted"  # in the content of the branch
    min_effect_pct: float | None = None  # of benchmarks' metrics; None: each program's


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    id: int
    tree: int
    kind: ChangeKind
    old_commit: str
    new_commit: str


@dataclass(frozen=True, slots=True)
class KernelTrust:
    """How far a kernel is trusted. Trust because of a token ends with it. `voucher` None: the
    tree is trusted, or an operator vouches for the commit.
    """

    level: Trust = "trusted"
    voucher: int | None = None  # number of the token


TRUSTED: Final = KernelTrust()
UNTRUSTED: Final = KernelTrust("untrusted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One kernel to measure."""

    id: int
    tree: int
    commit: str
    subject: str
    author: str
    tree_hash: str
    kconfig: str
    compiler: str
    layout: int
    build_key: str
    trust: Trust = "trusted"
    voucher: int | None = None  # as in `KernelTrust`

    @property
    def kernel_trust(self) -> KernelTrust:
        return KernelTrust(self.trust, self.voucher)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBuild:
    build_key: str
    status: BuildStatus
    image_sha256: str | None
    errors: tuple[str, ...]
    seconds: float
    cached: bool
    compiler_version: str
    config_sha256: str | None

    @property
    def trouble(self) -> str:
        """Why a failed build has no kernel."""
        return f"{UNBUILT}: {self.errors[0] if self.errors else 'see build.log'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootKey:
    """The identity of a boot: the k-th one of a kernel with these unit jobs on a testbox.

    `series` is "" if the boots are shared by all requesters (a repeatable testbox gives the same
    result again). Otherwise it names the comparison or bisection that owns them. `k` counts the
    boots of one purpose (plan/boot_numbers.py).
    """

    build_key: str
    testbox: str
    spec: str
    series: str
    k: int
    purpose: str = SEARCH

    def __str__(self) -> str:
        number = f"{self.k}" if self.purpose == SEARCH else f"{self.purpose}:{self.k}"
        return f"boot:{self.build_key}:{self.testbox}:{self.spec}:{self.series}:{number}"


class BootNumbers(NamedTuple):
    """Boot numbers of one purpose; boot k of base and boot k of head are a pair."""

    ks: Sequence[int]
    purpose: str = SEARCH


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCompiler:
    """A compiler announced by a build worker; `problem` is why it cannot build kernels there."""

    worker: str
    name: str
    version: str
    problem: str | None = None


class OpenOrder(NamedTuple):
    """What a round needs to know of each order that is not over; there may be ten thousands."""

    id: int
    kind: OrderKind
    build_key: str
    variant: int
    testbox: str | None  # None: a build
    state: OrderState
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    id: int
    kind: OrderKind
    key: str
    build_key: str
    variant: int
    testbox: str | None
    spec: str | None
    series: str | None
    k: int | None
    purpose: str = SEARCH  # of a boot
    state: OrderState
    reason: str | None
    priority: int
    budget: int

    @property
    def over(self) -> bool:
        """Whether the order is over."""
        return self.state in OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyOrder:
    """An order that may be handed out, with what decides who is next (`core/plan/turns.py`)."""

    order: Order
    trust: Trust  # of its kernel
    asker: str | None = None
    served: float | None = None  # seconds

    @property
    def id(self) -> int:
        return self.order.id

    @property
    def testbox(self) -> str | None:
        return self.order.testbox

    @property
    def priority(self) -> int:
        return self.order.priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A running or ended execution of an order, with what the queue needs to know."""

    id: int
    order_id: int
    number: int
    state: AttemptState
    outcome: Mapping[str, Any] | None
    age_seconds: float
    dispatch_number: int
    dispatch_state: DispatchState | None
    dispatch_result: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRecord:
    """A boot that took place. The measurements of its runs are looked up by `id`."""

    id: int
    k: int
    outcome: BootOutcome
    reason: str | None
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)  # recorded by guest and driver

    @property
    def trouble(self) -> str:
        """Outcome of a boot that did not come up."""
        return self.outcome.replace("_", " ") + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBoot:
    """The part of a boot needed to reparse its results; `results` is the sha256 of results.tar."""

    id: int
    testbox: str
    spec: str
    outcome: BootOutcome
    reason: str | None
    results: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A stored run. `parser` is the hash of the code that parsed it; None: not recorded."""

    id: int
    unit_job: str
    number: int
    status: RunStatus
    reason: str | None
    seconds: float | None
    parser: str | None
    samples: Mapping[str, list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One kernel of a comparison or experiment and its boot settings: a row of the table."""

    name: str
    variant: int
    # Its value on each requested axis: {"compiler": "gcc-12", "cmdline": "never"}.
    axes: Mapping[str, str] = field(default_factory=dict)
    # Settings in addition to those of the jobs: {"cmdline": WORDS, "sysctl": {name: value}}.
    settings: Mapping[str, Any] = field(default_factory=dict)
    # The specs to run in place of those of the parts, if its settings make them differ.
    specs: Mapping[str, str] = field(default_factory=dict)
    from_block: int = 0  # first block with this arm; an arm added later lacks earlier blocks

    def spec(self, part: str) -> str:
        """Return the spec to run for a part with this spec."""
        return self.specs.get(part, part)


def base_and_head(base: int, head: int) -> tuple[Arm, Arm]:
    """Return the two arms of a plain comparison; arguments are variant numbers."""
    return Arm(name="base", variant=base), Arm(name="head", variant=head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Kernels measured side by side. An experiment has any number of arms."""

    id: int
    kind: ComparisonKind
    tree: int
    arms: tuple[Arm, ...]
    against: tuple[Reference, ...] = ("first",)  # the first one applies to the table
    columns: tuple[str, ...] = ()  # additional columns of the table
    first_k: int
    purpose: str = SEARCH
    boots: int
    status: ComparisonStatus
    parts: tuple[tuple[str, str], ...]  # (testbox, spec)
    looks: int = 1  # how often it is judged: one more for each manual extension
    looks_stated: int = 1  # of these, how many were stated in the request
    # smallest change of interest, of the request or else of the tree; None: each program's
    min_effect_pct: float | None = None
    reason: str | None = None  # why it failed or was cancelled; for an anchor: its mark
    request_key: str | None = None  # repeated requests with the same key are one request
    private_to: tuple[str, ...] | None = None  # who may read it, with operators; None: everybody

    @property
    def base(self) -> int:
        """The variant of the first arm; of a plain comparison, the base."""
        return self.arms[0].variant

    @property
    def head(self) -> int:
        """The variant of the last arm; of a plain comparison, the head."""
        return self.arms[-1].variant

    @property
    def open(self) -> bool:
        """Whether the comparison may still get boots."""
        return self.status in ("waiting", "running")

    @property
    def numbers(self) -> BootNumbers:
        """The boot numbers of each arm."""
        return BootNumbers(range(self.first_k, self.first_k + self.boots), self.purpose)


def may_read(table: Comparison, name: str | None) -> bool:
    """Whether somebody without the role operator may read a table; `name` is None for anonymous."""
    return table.private_to is None or name in table.private_to


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComparison:
    """A comparison to create. With a `request_key`, it is created only once."""

    kind: ComparisonKind
    tree: int
    arms: Sequence[Arm]
    boots: int  # per arm
    parts: Sequence[tuple[str, str]]  # (testbox, spec)
    against: Sequence[Reference] = ("first",)
    columns: Sequence[str] = ()
    change: int | None = None
    first_k: int = 0  # number of its first boot among those of its purpose
    purpose: str = SEARCH
    looks_stated: int = 1  # how often it may be judged at the stated error rate
    min_effect_pct: float | None = None  # None: that of the tree
    request_key: str | None = None
    private_to: Sequence[str] | None = None  # who may read it, with operators; None: everybody


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """The part of an incident needed for its proof.

    `comparison` compares the parent (`base`) with the culprit (`head`).
    """

    id: int
    tree: int
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    id: int
    tree: int
    origin: RequestOrigin
    good: str
    bad: str
    testbox: str
    spec: str
    series: str
    unit_job: str
    metric: str
    terms: BisectionTerms
    status: BisectionStatus

    @property
    def key(self) -> tuple[str, str, str]:
        """Testbox, unit job and metric: identifies its row in a comparison."""
        return self.testbox, self.unit_job, self.metric

    @property
    def testboxes(self) -> tuple[str, ...]:
        """The testboxes that share its boots, one or a group; `testbox` of a boot is an index into
        it."""
        return self.terms.testboxes or (self.testbox,)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBisection:
    """A bisection to create, once per `request_key`."""

    tree: int
    origin: RequestOrigin
    good: str
    bad: str
    testbox: str
    spec: str
    series: str | None  # None: its own, b<number>
    unit_job: str
    metric: str
    terms: BisectionTerms
    points: Sequence[tuple[Variant, float]]  # with prior weights, from `good` to `bad`
    request_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer:
    """An instruction by a person to a bisection, in force from its next step on."""

    act: SteerAct
    points: tuple[int, ...]
    factor: float | None  # hint: factor for the prior weight
    boots: int | None  # resume: boots permitted from then on
    why: str | None
    who: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    id: int
    comparison: int
    testbox: str
    unit_job: str
    metric: str
    direction: Direction
    change_pct: float
    state: SwingState
    bisection: int | None
    source: SwingSource = "base"  # what raised the alarm
    # variant to compare with in place of the base: an older tip (creep, spread), or an expected
    # commit
    anchor: int | None = None
    upto: int | None = None  # last variant of the search range, if not the tip
    proof: int | None = None  # comparison whose pairs proved or refuted it


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSwing:
    """A conspicuous row of a comparison; it is recorded once."""

    comparison: int
    testbox: str
    unit_job: str
    metric: str
    direction: Direction
    change_pct: float
    state: Literal["suspected", "not_bisected"]
    source: SwingSource
    reason: str  # what raised the alarm, as a phrase
    anchor: int | None = None  # as in Swing


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeHistory:
    """The history of one metric over the tips of a watched branch."""

    tree: int
    testbox: str
    unit_job: str
    metric: str
    upto: int  # comparison of the last tip in it
    # `Findings.to_json`, with {commit, comparison} of each named tip under "tips", by its number
    findings: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The level of a tip of a watched branch."""

    comparison: int
    variant: int
    commit: str
    mean: float  # of boot means, in the metric's unit
    stddev: float | None = None  # between boots, in the metric's unit; None for a single boot
    boots: int
