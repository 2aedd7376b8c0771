"""The operations of the API: every address that answers JSON to programs.

`tests/unit/test_openapi.py` compares them with the routes of the web application.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any, Final

from swingbot.core.access.roles import Role
from swingbot.core.incident.decide import IncidentDecision
from swingbot.core.model import ids
from swingbot.core.moderation.decision import ReportDecision, SwitchDecision
from swingbot.core.proof.proof_request import ProofRequest
from swingbot.core.table.request_document import (
    AskedCommits,
    AskedExtension,
    SentBisection,
    SentHint,
    SentResumption,
    SentReturn,
    SentSkip,
)
from swingbot.web.pages.form_body import request_schema
from swingbot_jobs import codec

Schema = dict[str, Any]
JSON: Final = ".json"
KNOWN: Final = "/commits/known"  # changes nothing


class Limited(IntEnum):
    """What tokens limited to testbox groups get at an address."""

    REFUSED = 0
    ROWS = 1  # what their groups measured; those without levels are refused
    CHANGES = 2  # those without levels get changes in percent


# What a token without levels gets in place of a document.
_OF_CHANGES: Final = {"Table": "TableOfChanges", "LineOfATable": "LineOfChanges"}


def _answers(document: str, limited: Limited) -> list[str]:
    return [document, *([_OF_CHANGES[document]] if limited is Limited.CHANGES else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`answers` are the types that its document may have; `listed`: it is a list of them.

    `role` is what a change needs; None: it only reads. `statuses` are those of answers with the
    document, and `query` explains each parameter. `limited`: what tokens limited to testbox groups
    get there (`by_group.py`).
    """

    method: str = "GET"
    path: str
    about: str
    answers: Sequence[str]
    listed: bool = False
    role: Role | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[], Schema] | None = None
    statuses: Sequence[int] = (200,)
    limited: Limited = Limited.REFUSED

    @property
    def once(self) -> bool:
        """Whether a request with an Idempotency-Key is carried out once."""
        return self.method == "POST" and self.path != KNOWN


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def _list(plural: str, line: str, *filters: str, limited: Limited = Limited.REFUSED) -> Operation:
    return Operation(
        limited=limited,
        path=f"/{plural}{JSON}",
        about=f"List {plural}; the header Link has the address of the next rows.",
        answers=_answers(line, limited),
        listed=True,
        query={name: _FILTERS.get(name, "filter; commas separate values") for name in filters}
        | {"limit": "rows at most, 1 to 500 (100)", "after": "cursor, from Link"},
    )


def _show(
    kind: str, answer: str, about: str = "", *, limited: Limited = Limited.REFUSED, **query: str
) -> Operation:
    parameter = "{name}" if kind in ("tree", "testbox") else "{id}"
    key = "{build_key}" if kind == "kernel" else parameter
    return Operation(
        limited=limited,
        path=f"/{kind}/{key}{JSON}",
        about=about or f"Show {_a(kind)}.",
        answers=_answers(answer, limited),
        query=query,
    )


def _request(path: str, what: str) -> Operation:
    return Operation(
        method="POST",
        path=path,
        about=f"Request {what}; with dry_run: its plan and cost only.",
        answers=["AnswerToARequest"],
        role=Role.SUBMITTER,
        body=request_schema,
        statuses=(200, 201),
    )


def _post(
    path: str,
    about: str,
    answer: str,
    reads: type | None = None,
    role: Role = Role.SUBMITTER,
    statuses: Sequence[int] = (200,),
) -> Operation:
    """`reads` is the type of the body."""
    return Operation(
        method="POST",
        path=path,
        about=about,
        answers=[answer],
        role=role,
        body=None if reads is None else partial(codec.json_schema, reads),
        statuses=statuses,
    )


_OF_TABLES: Final = (*("tree", "status", "kind", "testbox", "test", "person", "since"),)
_OF_BISECTIONS: Final = (
    *("tree", "status", "testbox", "test", "metric", "origin", "person", "since"),
)
_OF_INCIDENTS: Final = (
    *("tree", "status", "owner", "direction", "testbox", "test", "metric", "author", "since"),
    "sort",
)
_FILTERS: Final = {
    "person": "who asked for it; commas separate several",
    "since": "a time in UTC, such as 2026-01-02",
    "test": "part of a unit job's name; commas separate several",
    "sort": "newest, oldest, change or author",
}
_NEXT: Final = "cursor, from `next` of the document"
_RESULTS: Final = {
    "tree": "name of the tree",
    "kernel": "commit, tag or variant; two to six, repeated",
    "testbox": "name; may be repeated",
    "test": "part of a unit job's name",
    "metric": "part of a metric's name; shows counters too",
    "verdict": "may be repeated",
    "sort": "order of the rows",
}
_CONFIGURATION: Final = {"kconfig": "name of the configuration", "compiler": "name of the compiler"}
OPERATIONS: Final[Sequence[Operation]] = (
    Operation(path="/status.json", about="What runs, waits and is wrong.", answers=["Status"]),
    Operation(
        path="/healthz",
        about="Whether the parts of the service work.",
        answers=["Health"],
        statuses=(200, 503),
    ),
    Operation(
        limited=Limited.CHANGES,
        path="/login.json",
        about="Whose token this is.",
        answers=["WhoseToken"],
    ),
    Operation(
        path="/tokens.json",
        about="Your tokens; for an operator everybody's.",
        answers=["Token"],
        listed=True,
        role=Role.READER,
        query={"over": "1: also those that expired or were revoked"},
    ),
    _list("comparisons", "LineOfATable", *_OF_TABLES, limited=Limited.CHANGES),
    _list("experiments", "LineOfATable", *_OF_TABLES, limited=Limited.CHANGES),
    _list("bisections", "LineOfABisection", *_OF_BISECTIONS, limited=Limited.ROWS),
    _list("incidents", "LineOfAnIncident", *_OF_INCIDENTS, limited=Limited.ROWS),
    _list("reports", "LineOfAReport", "state", "kind", "incident", "since"),
    _list(
        "orders",
        "LineOfAnOrder",
        "kind",
        "state",
        "testbox",
        "tree",
        "series",
        "since",
        limited=Limited.ROWS,
    ),
    _list("testboxes", "LineOfATestbox", "name", "state", "tbox_group", limited=Limited.ROWS),
    _list("compilers", "LineOfACompiler", "worker", "name"),
    _list("trees", "LineOfATree", "name", "state"),
    _list("metrics", "LineOfAMetric", "testbox", "unit_job", "metric", limited=Limited.ROWS),
    _show("comparison", "Table", after=_NEXT, limited=Limited.CHANGES),
    _show("experiment", "Table", after=_NEXT, limited=Limited.CHANGES),
    _show("bisection", "Bisection", limited=Limited.ROWS),
    *(
        Operation(
            limited=Limited.ROWS,
            path=f"/{kind}/{{id}}/progress.json",
            about=f"How far {_a(kind)} is; /{kind}/{{id}}/progress streams what changes.",
            answers=["ProgressOfARequest"],
        )
        for kind in ids.REQUESTS
    ),
    Operation(
        limited=Limited.ROWS,
        path="/bisection/{id}/explanation.json",
        about="What a bisection believes and why; its log is log.txt or log.jsonl.",
        answers=["Explanation"],
    ),
    _show("incident", "Incident", limited=Limited.ROWS),
    _show("report", "Report"),
    _show("order", "Order", limited=Limited.ROWS),
    _show("boot", "Boot", after=_NEXT, limited=Limited.ROWS),
    _show("variant", "Variant", limited=Limited.ROWS),
    _show("kernel", "KernelBuild", "Show the build of a kernel.", limited=Limited.ROWS),
    _show("tree", "Tree"),
    _show("testbox", "Testbox", limited=Limited.ROWS),
    Operation(
        limited=Limited.ROWS,
        path="/search.json",
        about="Find what matches every word.",
        answers=["Search"],
        query={
            "q": "words",
            "kind": "only these: commits, mails, tests, metrics, testboxes or trees",
            "after": "of one kind: cursor, from `next` of the document",
        },
    ),
    Operation(
        path="/posted.json",
        about="Find kernels by the mails that their commits were posted as, or by their diffs.",
        answers=["PostedCommit"],
        listed=True,
        query={
            "mail": "a Message-ID with its <>; up to 40, repeated",
            "patch": "a `git patch-id --verbatim`; up to 40, repeated",
        },
    ),
    Operation(
        limited=Limited.ROWS,
        path="/results.json",
        about="Compare kernels by boots that exist; with fewer than two: what can be compared.",
        answers=["Results", "ChoiceOfKernels"],
        query=_RESULTS,
    ),
    Operation(
        limited=Limited.ROWS,
        path="/metric/{tree}/{testbox}/{unit_job}/{metric}.json",
        about="A metric over all measured commits.",
        answers=["MetricOverCommits"],
        query=_CONFIGURATION,
    ),
    Operation(
        limited=Limited.ROWS,
        path="/metric.json",
        about="A metric over all measured commits; names may be left out if only one fits.",
        answers=["MetricOverCommits"],
        query={
            "metric": "full name of the metric",
            "tree": "name of the tree",
            "testbox": "name of the testbox",
            "unit_job": "name of the unit job",
            **_CONFIGURATION,
        },
    ),
    Operation(
        limited=Limited.ROWS,
        path="/cover.json",
        about="Which jobs run the code of a source or commit, and which of its functions none.",
        answers=["Cover"],
        query={
            "tree": "name of the tree",
            "code": "path of a source, as in the kernel's tree; or a commit of the branch, or one"
            " that you sent",
        },
    ),
    Operation(
        path="/recipients.json",
        about="Who would get a report about a commit, and who is left out and why.",
        answers=["Recipients"],
        role=Role.MODERATOR,
        query={
            "tree": "name of the tree",
            "commit": "hash or prefix, tag, `base` or `tip`",
            "base": "commit whose MAINTAINERS counts, in place of the tree's base",
        },
    ),
    Operation(path="/moderation.json", about="Reports that wait.", answers=["Moderation"]),
    Operation(path="/outbox.json", about="Mails to be sent, and sent.", answers=["Outbox"]),
    Operation(
        limited=Limited.ROWS,
        path="/raw/{id}/manifest.json",
        about="Files and runs behind an object; each file is at /raw/{id}/PATH.",
        answers=["ManifestOfRawResults"],
    ),
    Operation(
        limited=Limited.ROWS,
        path="/raw/{id}/order.json",
        about="The order behind a boot: jobs/schema/order-1.schema.json.",
        answers=[],
    ),
    *(
        Operation(
            path=f"/{kind}/{{id}}/reproduce.json",
            about=f"The files of the kit of {_a(kind)}.",
            answers=["ContentsOfAKit"],
            query={"testbox": "one of its testboxes", "kernels": "0: without kernel images"},
        )
        for kind in ("report", *ids.TABLES)
    ),
    _request("/compare", "a comparison"),
    _request("/experiment", "an experiment"),
    _post(
        "/bisect",
        "Request a bisection; with dry_run: its plan and cost only.",
        "AnswerToABisection",
        SentBisection,
        statuses=(200, 201),
    ),
    _post(
        "/bisection/{id}/skip",
        "Skip commits of a bisection that you asked for.",
        "SteeredBisection",
        SentSkip,
    ),
    _post(
        "/bisection/{id}/hint",
        "Weight commits of a bisection that you asked for.",
        "SteeredBisection",
        SentHint,
    ),
    _post(
        "/bisection/{id}/resume",
        "Resume a bisection that you asked for; with dry_run: its plan and cost only.",
        "AnswerToAResumption",
        SentResumption,
    ),
    _post("/bisection/{id}/cancel", "Cancel a bisection that you asked for.", "Cancelled"),
    *(
        one
        for kind in ids.TABLES
        for one in (
            _post(f"/{kind}/{{id}}/cancel", f"Cancel {_a(kind)} that you asked for.", "Cancelled"),
            _post(
                f"/{kind}/{{id}}/publish",
                f"Let everybody read {_a(kind)} that you asked for and that is private.",
                "Published",
            ),
            _post(
                f"/{kind}/{{id}}/extend",
                f"Extend {_a(kind)} that you asked for.",
                "AnswerToAnExtension",
                AskedExtension,
            ),
        )
    ),
    _post(
        "/testbox/{name}/resume",
        "Return a testbox to service.",
        "ReturnedTestbox",
        SentReturn,
        Role.OPERATOR,
    ),
    _post(
        "/incident/{id}/decide",
        "Decide about an incident; answers with the one to look at.",
        "DecidedIncident",
        IncidentDecision,
        Role.MODERATOR,
    ),
    _post(
        "/report/{id}/decide",
        "Release, hold or drop a report.",
        "DecidedReport",
        ReportDecision,
        Role.MODERATOR,
    ),
    _post(
        "/incident/{id}/prove",
        "Run gates again with fresh boots, as an operator; with dry_run: their costs only.",
        "AskedGates",
        ProofRequest,
        Role.MODERATOR,
    ),
    _post(
        "/report/{id}/readdress",
        "Compute the recipients of a held or drafted report again.",
        "DecidedReport",
        role=Role.MODERATOR,
    ),
    _post(
        "/outbox/switch",
        "Stop or resume all mail.",
        "SwitchedMail",
        SwitchDecision,
        Role.MODERATOR,
    ),
    _post(
        KNOWN,
        "Which commits the service has, in a tree or sent by you.",
        "KnownCommits",
        AskedCommits,
    ),
)
