"""What the web service answers to programs beside pages. `documents.py` has the rules."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from swingbot.core.model.documents import NamedCommit
from swingbot.core.model.plan_documents import (
    PlanOfABisection,
    PlanOfAnExtension,
    PlanOfAResumption,
    PlanOfATable,
)
from swingbot.core.model.report_documents import MailSwitch


class WhoseToken(TypedDict):
    who: str | None  # person; null: anonymous
    role: str | None  # `reader`, `submitter`, `moderator` or `operator`
    groups: list[str] | None  # testbox groups that it may see; null: all
    levels: bool | None  # false: of these it sees changes in percent only


class QueuedKeys(TypedDict):
    id: str | None  # of what is queued; null: a dry run
    new: NotRequired[bool]  # false: it existed already; not of a dry run


class PlannedKeys(TypedDict):
    refused: NotRequired[str | None]  # of a dry run: why it would not be queued
    lines: list[str]  # the plan as text


class AnswerToARequest(QueuedKeys, PlannedKeys):
    plan: PlanOfATable  # what it is, and its cost
    patches: list[str]  # subjects
    left_out: list[dict[str, Any]]  # mails that are not patches: `subject`, `reason`
    # of the person: `open_requests`, and in 24 hours `daily_requests` and `testbox_seconds`
    used: dict[str, Any]
    quota: dict[str, Any] | None  # `open_requests`, `testbox_seconds`; null: none


class AnswerToABisection(QueuedKeys, PlannedKeys):
    plan: PlanOfABisection  # what it is, and its cost


class AnswerToAnExtension(PlannedKeys):
    id: str
    plan: PlanOfAnExtension  # what it adds, and its cost


class ProgressOfARequest(TypedDict):
    """How far a table or bisection is; also each event of `/KIND/ID/progress`."""

    id: str
    status: str  # that of its document
    over: bool  # nothing follows; false while a branch of a bisection is searched
    words: str  # builds and boots, or what the bisection believes
    waits: list[str]
    eta_seconds: float | None
    eta_note: str | None


class AnswerToAResumption(PlannedKeys):
    id: str
    plan: PlanOfAResumption  # what it allows, and its cost


class Cancelled(TypedDict):
    id: str
    was: str  # its status before; one that had ended keeps it


class Published(TypedDict):
    id: str


class SteeredBisection(TypedDict):
    id: str
    commits: list[str]  # that it is about


class ReturnedTestbox(TypedDict):
    testbox: str
    was: str  # its state before: `active`, `drained` or `quarantined`


class DecidedIncident(TypedDict):
    id: str
    status: str  # `open`, `closed`, `expected`, `invalid`, `fixed` or `duplicate`


class CostOfAGate(TypedDict):
    """If it is run now. Alone: kernels that gates share count in each."""

    gate: str  # its name
    builds: int  # kernels
    boots: int
    seconds: float
    answer: str | None  # its result, where it needs no boots


class AskedGates(TypedDict):
    id: str  # of the incident
    costs: NotRequired[list[CostOfAGate]]  # of a dry run alone
    # true: its gates open once its culprit is measured against its parent; not of a dry run
    measures_parent_first: NotRequired[bool]


class DecidedReport(TypedDict):
    id: str
    state: str  # as of a report


class SwitchedMail(TypedDict):
    switch: MailSwitch  # whether mail leaves
    stopped_by_setting: bool  # `mail.stop` stops it too


class KnownCommits(TypedDict):
    known: list[str]  # of the commits that were asked for


class PostedCommit(NamedCommit):
    """A commit that the service has a kernel of, and what it was posted as."""

    message_id: str  # of the trailers of the commit, with its <>; empty: none
    patch_ids: list[str]  # `git patch-id --verbatim` of its patches, its own last
    complete: bool  # these are all; of a branch's commit only its own is known
    tree: str
    tables: list[str]  # ids of those with a kernel of it, asked for or of an incident, latest first


class ManifestOfRawResults(TypedDict):
    id: str
    kind: str  # kind of the id
    files: list[dict[str, Any]]  # `path`, `sha256`, `size`
    boots: list[dict[str, Any]]  # with `roles` and `runs` ([raw-results](raw-results.md))


class ContentsOfAKit(TypedDict):
    report: NotRequired[str]  # id of the report
    comparison: NotRequired[str]  # or of the comparison
    experiment: NotRequired[str]  # or of the experiment
    directory: str  # into which it unpacks
    boots: list[str]  # ids
    files: list[dict[str, Any]]  # `path`, `sha256`, `size`
    missing: list[str]  # what is no longer available


class LineOfACompiler(TypedDict):
    worker: str  # build worker
    name: str
    version: str  # first line of `--version`
    problem: str | None  # why it builds no kernels
    announced_at: str  # time
