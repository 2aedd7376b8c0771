"""What an in-memory store remembers: one dictionary a table, whose rows are frozen and replaced,
so that a copy of the dictionaries is a savepoint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from swingbot.core.access.roles import Person, Role
from swingbot.core.incident.model import Incident
from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.noise import NoiseRecord
from swingbot.core.model.patches import BranchPatch, Patch
from swingbot.core.model.records import (
    Bisection,
    Change,
    Comparison,
    KernelBuild,
    Order,
    Steer,
    Swing,
    Tree,
    TreeHistory,
    Variant,
    WorkerCompiler,
)
from swingbot.core.model.statuses import (
    AttemptState,
    DispatchState,
    ModerationAct,
    ReportState,
    TestboxState,
)
from swingbot.core.model.testbox_state import TestboxPhase, TestboxStatus
from swingbot.core.moderation.ruling import ReportClass
from swingbot.core.proof.gates import GateRow
from swingbot.core.report.mails.alert import Alert
from swingbot.service.ports.access import AccessAct, KeptAnswer
from swingbot_jobs.contract.orders import BootOutcome
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.result import RunStatus
from swingbot_jobs.testbox.definition import Testbox

START: Final = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class TreeRow:
    tree: Tree
    watched: bool = True
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class OrderRow:
    order: Order
    created_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    id: int
    order: int
    number: int
    created_at: datetime
    state: AttemptState = "running"
    outcome: Mapping[str, Any] | None = None
    reason: str | None = None
    late: Mapping[str, Any] | None = None
    ingested: bool = False
    ended_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class DispatchRow:
    id: int
    attempt: int
    number: int
    builder: str
    external_id: str
    state: DispatchState = "wanted"
    result: str | None = None
    buildset: int | None = None
    request: int | None = None
    build: tuple[int, int] | None = None  # builder, number


@dataclass(frozen=True, kw_only=True)
class LeaseRow:
    attempt: int
    holder: str | None = None
    until: datetime | None = None
    fence: int | None = None


@dataclass(frozen=True, kw_only=True)
class BuildRow:
    build: KernelBuild
    files: Mapping[str, Any]
    attempt: int
    built_at: datetime


@dataclass(frozen=True, kw_only=True)
class BootRow:
    id: int
    attempt: int
    order: Order
    image: str
    outcome: BootOutcome
    reason: str | None
    facts: Mapping[str, Any]
    files: Mapping[str, Any]
    seconds: float
    origin: str
    booted_at: datetime


@dataclass(frozen=True, kw_only=True)
class RunRow:
    id: int
    boot: int
    unit_job: str
    number: int
    status: RunStatus
    reason: str | None
    seconds: float | None
    parser: str | None
    samples: Mapping[str, list[float]]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A comparison."""

    comparison: Comparison
    created_at: datetime
    change: int | None = None
    ended_at: datetime | None = None
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class SwingRow:
    swing: Swing
    evidence: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class BisectionRow:
    bisection: Bisection
    request_key: str
    created_at: datetime
    ended_at: datetime | None = None
    reason: str | None = None
    conclusion: Mapping[str, Any] | None = None
    belief: Mapping[str, Any] = field(default_factory=dict)
    parent: int | None = None
    merged: str | None = None


@dataclass(frozen=True, kw_only=True)
class PointRow:
    variant: int
    weight: float
    skipped: str | None = None
    hint: float = 1.0


@dataclass(frozen=True, kw_only=True)
class WantRow:
    want: WantedBoot
    asked_at: datetime


@dataclass(frozen=True, kw_only=True)
class ObservationRow:
    boot: int | None
    values: tuple[float, ...]
    skip: str | None


@dataclass(frozen=True, kw_only=True)
class StepRow:
    engine: str
    facts: str
    digest: str
    action: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class TestboxRow:
    __test__ = False

    testbox: Testbox
    facts: Mapping[str, Any]
    state: TestboxState = "active"
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class TestboxStatusRow:
    """What a testbox does, and how far its screening is."""

    status: TestboxStatus
    screening_since: datetime
    screening_boots: int = 0
    screened: bool = False
    hardware: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class EventRow:
    """An entry in the history of a testbox."""

    testbox: str
    was: TestboxPhase
    state: TestboxPhase
    why: str
    attempt: int | None


@dataclass(frozen=True, kw_only=True)
class SightingRow:
    id: int
    incident: int
    bisection: int
    culprit: int
    patch_id: str | None
    comparison: int | None = None
    report: int | None = None


@dataclass(frozen=True, kw_only=True)
class IncidentEventRow:
    incident: int
    act: str
    who: str
    reason: str | None
    detail: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ReportRow:
    id: int
    incident: int | None
    kind: str
    revision: int
    message_id: str
    subject: str
    message: bytes
    state: ReportState
    created_at: datetime
    week: date | None
    alert: int | None
    judged: ReportClass | None
    body: str
    recipients: tuple[str, ...]
    lists: tuple[str, ...]
    next_try: datetime
    reason: str | None
    tries: int = 0
    error: str | None = None
    withdrawn: str | None = None
    sent_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class DecisionRow:
    """What a person decided about a report, or about all mail."""

    act: ModerationAct
    report: int | None
    counts: bool


@dataclass(frozen=True, kw_only=True)
class GateOf:
    gate: GateRow
    asked_at: datetime


@dataclass(frozen=True, kw_only=True)
class TokenRow:
    person: Person
    digest: str | None = None  # None: the operator's key
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None

    def is_valid(self, now: datetime) -> bool:
        return not self.revoked_at and (self.expires_at is None or self.expires_at > now)


@dataclass(frozen=True, kw_only=True)
class SessionRow:
    token: int
    until: datetime


@dataclass(frozen=True, kw_only=True)
class AccessEventRow:
    act: AccessAct
    who: str
    token: int | None
    detail: str | None
    at: datetime


@dataclass(frozen=True, kw_only=True)
class AskedRow:
    testbox_seconds: float
    at: datetime


@dataclass(frozen=True, kw_only=True)
class ResultMailRow:
    id: str
    token: int
    report: int | None = None


@dataclass(frozen=True, kw_only=True)
class KeptAnswerRow:
    digest: str
    answer: KeptAnswer | None
    at: datetime


# changes of these do not wake the loop
_UNHEARD: Final = (
    *(
        "last_id",
        "unseen",
        "tokens",
        "sessions",
        "access_events",
        "asked",
        "kept_answers",
        "sent_commits",
    ),
)


def _operators_key() -> dict[int, TokenRow]:
    return {1: TokenRow(person=Person(who="operator", role=Role.OPERATOR, token=1))}


@dataclass(kw_only=True)
class Tables:
    """Keys are ids, or what is unique about a row.

    `elapsed` is how far the clock is; each look at it takes a microsecond.
    """

    elapsed: timedelta = timedelta()
    begun: datetime = START  # of the open transaction
    last_id: dict[str, int] = field(default_factory=lambda: {"token": 1})
    trees: dict[int, TreeRow] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)
    patches: dict[str, Patch] = field(default_factory=dict)
    branches: dict[int, tuple[BranchPatch, ...]] = field(default_factory=dict)
    histories: dict[tuple[int, str, str, str], TreeHistory] = field(default_factory=dict)
    variants: dict[int, Variant] = field(default_factory=dict)
    specs: dict[str, tuple[UnitJob, ...]] = field(default_factory=dict)
    orders: dict[int, OrderRow] = field(default_factory=dict)
    wants: dict[tuple[int, int | None, int | None], None] = field(default_factory=dict)
    attempts: dict[int, AttemptRow] = field(default_factory=dict)
    dispatches: dict[tuple[int, int], DispatchRow] = field(default_factory=dict)
    leases: dict[str, LeaseRow] = field(default_factory=dict)
    uploads: dict[tuple[int, str], int] = field(default_factory=dict)
    compilers: dict[tuple[str, str], WorkerCompiler] = field(default_factory=dict)
    builds: dict[str, BuildRow] = field(default_factory=dict)
    forecasts: dict[str, float] = field(default_factory=dict)
    boots: dict[int, BootRow] = field(default_factory=dict)
    runs: dict[int, RunRow] = field(default_factory=dict)
    comparisons: dict[int, Asked] = field(default_factory=dict)
    rows: dict[tuple[int, str, str, str, str, int], ComparisonRow] = field(default_factory=dict)
    swings: dict[int, SwingRow] = field(default_factory=dict)
    bisections: dict[int, BisectionRow] = field(default_factory=dict)
    points: dict[tuple[int, int], PointRow] = field(default_factory=dict)
    bisection_wants: dict[tuple[int, int, int], WantRow] = field(default_factory=dict)
    observations: dict[tuple[int, int, int], ObservationRow] = field(default_factory=dict)
    steps: dict[tuple[int, int], StepRow] = field(default_factory=dict)
    steers: dict[int, tuple[int, Steer]] = field(default_factory=dict)
    testboxes: dict[str, TestboxRow] = field(default_factory=dict)
    testbox_statuses: dict[str, TestboxStatusRow] = field(default_factory=dict)
    events: dict[int, EventRow] = field(default_factory=dict)
    noise: dict[tuple[str, str, str], tuple[NoiseRecord, int]] = field(default_factory=dict)
    incidents: dict[int, Incident] = field(default_factory=dict)
    incident_bisections: dict[tuple[int, int], None] = field(default_factory=dict)
    incident_events: dict[int, IncidentEventRow] = field(default_factory=dict)
    sightings: dict[int, SightingRow] = field(default_factory=dict)
    gates: dict[tuple[int, str], GateOf] = field(default_factory=dict)
    reports: dict[int, ReportRow] = field(default_factory=dict)
    decisions: dict[int, DecisionRow] = field(default_factory=dict)
    stopped: dict[int, None] = field(default_factory=dict)  # a row if all mail is stopped
    result_mails: dict[int, ResultMailRow] = field(default_factory=dict)
    alerts: dict[int, Alert] = field(default_factory=dict)
    tokens: dict[int, TokenRow] = field(default_factory=_operators_key)
    sessions: dict[str, SessionRow] = field(default_factory=dict)
    access_events: dict[int, AccessEventRow] = field(default_factory=dict)
    asked: dict[tuple[str, str], AskedRow] = field(default_factory=dict)
    kept_answers: dict[tuple[int, str], KeptAnswerRow] = field(default_factory=dict)
    sent_commits: dict[str, int] = field(default_factory=dict)  # the token
    unseen: dict[int, None] = field(default_factory=dict)

    def now(self) -> datetime:
        self.elapsed += timedelta(microseconds=1)
        return START + self.elapsed

    def next_id(self, table: str) -> int:
        self.last_id[table] = self.last_id.get(table, 0) + 1
        return self.last_id[table]

    def savepoint(self) -> dict[str, Any]:
        return {
            each.name: dict(value) if isinstance(value := getattr(self, each.name), dict) else value
            for each in dataclasses.fields(self)
        }

    def differs(self, savepoint: Mapping[str, Any]) -> bool:
        """Whether a row of any table but `unseen` has changed since."""
        tables = (name for name, value in savepoint.items() if isinstance(value, dict))
        return any(
            getattr(self, name) != savepoint[name] for name in tables if name not in _UNHEARD
        )

    def restore(self, savepoint: Mapping[str, Any]) -> None:
        for name, value in savepoint.items():
            setattr(self, name, value)


class Refused(Exception):
    """What a constraint of the database would refuse."""


@dataclass(frozen=True)
class Noun:
    """A part of the in-memory store."""

    db: Tables


def iso_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
