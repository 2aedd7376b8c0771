"""What swingbot remembers, as frozen records: one class per noun, fields named as in the database.

Commits are 40 hex digits, times are seconds, ids are the plain numbers (the letter is added at the edge).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from swingbot.core.model.bisection import BisectionTerms
from swingbot.core.model.statuses import (
    AttemptState,
    BisectionStatus,
    ChangeKind,
    ComparisonKind,
    ComparisonStatus,
    Direction,
    DispatchState,
    OrderKind,
    OrderState,
    ReferenceRule,
    RequestOrigin,
    SteerAct,
    SwingSource,
    SwingState,
)
from swingbot_jobs.contract.orders import SEARCH, BootOutcome, BuildStatus
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.reading.result import RunStatus

UNBUILT: Final = (
    "does not build"  # begins the reason of whatever was not booted because there is no kernel
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFacts:
    """A commit as git tells it."""

    commit: str
    tree_hash: str
    parents: tuple[str, ...]
    subject: str
    author: str
    made_here: bool = False  # by us, out of a patch or a revert


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """A job file as it was when its tree or comparison was registered: later edits change nothing that runs."""

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
    trust: Trust = "trusted"  # of what its branch holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    id: int
    tree: int
    kind: ChangeKind
    old_commit: str
    new_commit: str


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
        """Why there is no kernel, in words; for a build that failed."""
        return f"{UNBUILT}: {self.errors[0] if self.errors else 'see build.log'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootKey:
    """Which boot is meant: the k-th one of this kernel with these unit jobs on this testbox.

    `series` is "" where boots are shared by all who ask (a repeatable testbox gives the same result again);
    otherwise it names the comparison or bisection whose own boots these are. `k` counts the boots of one purpose
    (plan/boot_numbers.py).
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
    """Boots of one purpose by their numbers: boot k of base and boot k of head are a pair."""

    ks: Sequence[int]
    purpose: str = SEARCH


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCompiler:
    """A compiler as a build worker announced it; `problem`: why it cannot build kernels there."""

    worker: str
    name: str
    version: str
    problem: str | None = None


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
        """Nothing more comes of it."""
        return self.state in ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A running or ended execution of an order, with what the queue needs to know about it."""

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
    """A boot that happened. What its runs measured is asked for by its `id`."""

    id: int
    k: int
    outcome: BootOutcome
    reason: str | None
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)  # what guest and driver noted of it

    @property
    def trouble(self) -> str:
        """How the boot ended, in words; for one that did not come up."""
        return self.outcome.replace("_", " ") + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBoot:
    """A boot as far as reading its results again needs it; `results` is the sha256 of its results.tar."""

    id: int
    spec: str
    outcome: BootOutcome
    reason: str | None
    results: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as it is remembered. `parser` is the hash of the code that read it; None: it was read before that was noted."""

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
    """One kernel of a comparison or experiment, and how it is booted: a row of the table."""

    name: str
    variant: int
    # Where it lies on each axis that was given: {"compiler": "gcc-12", "cmdline": "never"}.
    axes: Mapping[str, str] = field(default_factory=dict)
    # What its boots set beside what their jobs set: {"cmdline": WORDS, "sysctl": {name: value}}.
    settings: Mapping[str, Any] = field(default_factory=dict)
    # The spec that it runs in place of that of a part, where its settings make the two differ.
    specs: Mapping[str, str] = field(default_factory=dict)
    from_block: int = 0  # the first block it was booted in: one that was added later missed some

    def spec(self, part: str) -> str:
        """What it runs of a part with this spec."""
        return self.specs.get(part, part)


def base_and_head(base: int, head: int) -> tuple[Arm, Arm]:
    """The two arms of a plain comparison, from the numbers of their variants."""
    return Arm(name="base", variant=base), Arm(name="head", variant=head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Kernels measured side by side. An experiment is one of any number of arms."""

    id: int
    kind: ComparisonKind
    tree: int
    arms: tuple[Arm, ...]
    against: tuple[ReferenceRule, ...] = ("first",)  # the first one is that of the table
    beside: tuple[str, ...] = ()  # what the table shows beside the numbers
    first_k: int
    purpose: str = SEARCH
    boots: int
    status: ComparisonStatus
    parts: tuple[tuple[str, str], ...]  # (testbox, spec)
    looks: int = 1  # how often it is judged: once more with each extension by hand
    reason: str | None = None  # why it failed or was cancelled; of an anchor: its mark
    request_key: str | None = None  # asking twice with the same key is asking once

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
        """Boots may still come of it."""
        return self.status in ("waiting", "running")

    @property
    def numbers(self) -> BootNumbers:
        """Its boots of each arm."""
        return BootNumbers(range(self.first_k, self.first_k + self.boots), self.purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComparison:
    """A comparison to be made. Those of a `change` or with a `request_key` are made once."""

    kind: ComparisonKind
    tree: int
    arms: Sequence[Arm]
    boots: int  # of each arm
    parts: Sequence[tuple[str, str]]  # (testbox, spec)
    against: Sequence[ReferenceRule] = ("first",)
    beside: Sequence[str] = ()
    change: int | None = None
    first_k: int = 0  # number of its first boot among those of its purpose
    purpose: str = SEARCH
    request_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """An incident as far as its proof needs it; `comparison` is that of parent (`base`) and culprit (`head`)."""

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
        """Testbox, unit job and metric: which row of a comparison is its own."""
        return self.testbox, self.unit_job, self.metric

    @property
    def testboxes(self) -> tuple[str, ...]:
        """Those that share its boots: the one, or all of a group; `box` of a boot is the index here."""
        return self.terms.testboxes or (self.testbox,)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBisection:
    """A bisection to be made, once per `request_key`."""

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
    points: Sequence[tuple[Variant, float]]  # with the weight of the prior, from `good` to `bad`
    request_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer:
    """What a person told a bisection; in force from its next step on."""

    act: SteerAct
    points: tuple[int, ...]
    factor: float | None  # hint: times the prior weight
    boots: int | None  # resume: boots that may be spent from then on
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
    anchor: int | None = (
        None  # the variant that it is measured against instead of the base: an older tip (creep), or an expected commit
    )
    upto: int | None = None  # the variant that ends what is searched, where that is not the tip
    proof: int | None = None  # the comparison whose pairs proved or refuted it


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSwing:
    """A row of a comparison that stands out; it is noted once."""

    comparison: int
    testbox: str
    unit_job: str
    metric: str
    direction: Direction
    change_pct: float
    state: Literal["suspected", "noted"]
    source: SwingSource
    reason: str  # what raised the alarm, half a sentence
    anchor: int | None = None  # as in Swing


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeHistory:
    """What the tips of a watched branch show in one metric."""

    tree: int
    testbox: str
    unit_job: str
    metric: str
    upto: int  # the comparison of the last tip in it
    # `Findings.to_json`, and under "tips" {commit, comparison} of each tip that it names, by its number
    findings: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What a tip of a watched branch measured."""

    comparison: int
    variant: int
    commit: str
    mean: float  # of boot means, the metric's unit
    boots: int
