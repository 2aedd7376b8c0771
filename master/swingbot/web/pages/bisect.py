"""Request a bisection, or resume one: who may submit, within their quota."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any, Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.model import ids
from swingbot.core.model.records import JobFile
from swingbot.core.patchset.bundle import BadBundle
from swingbot.core.table.request_document import SentBisection, SentResumption
from swingbot.service.asked.requested import Requested
from swingbot.service.bisect.plan import BisectionPlan, plan_lines
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.bisect.resume import ResumeRequest, Resumption, resumption_lines
from swingbot.service.ports import RequestError
from swingbot.web.access.forms import Forms
from swingbot.web.http import json_body
from swingbot.web.http.fair_threads import FairThreads, client_of, in_turn
from swingbot.web.pages.acts import Act, ActPages, ActPlan, Field
from swingbot.web.pages.quota_left import Charging, with_quota
from swingbot.web.pages.refused import REFUSALS, refused

PATH: Final = "/bisect"


class BisectionSubmitter(Charging, Protocol):
    """Implemented by `swingbot.app.submitter.DatabaseSubmitter`.

    Raises RequestError for what cannot be bisected, NotYours.
    """

    def planning(self, person: Person) -> AbstractContextManager[None]:
        """Count the time of the block for the person. Raises OverQuota."""
        ...

    def job_files(self, names: Sequence[str]) -> list[JobFile]: ...
    def plan_bisection(self, request: BisectionRequest) -> tuple[BisectionPlan, str | None]:
        """Return the plan, and the reason if the quota would reject it."""
        ...

    def start_bisection(self, request: BisectionRequest) -> tuple[Requested, BisectionPlan]:
        """Queue the request. Raises OverQuota."""
        ...

    def plan_resumption(
        self, person: Person, request: ResumeRequest
    ) -> tuple[Resumption, str | None]:
        """Return the plan, and the reason if the quota would reject it."""
        ...

    def resume(self, person: Person, request: ResumeRequest) -> Resumption:
        """Resume the bisection. Raises OverQuota."""
        ...


def routes(
    forms: Forms,
    submitter: BisectionSubmitter,
    bundle_bytes: int,
    acts: ActPages,
    threads: FairThreads,
) -> list[Route]:
    """`bundle_bytes` is the size limit of the commits of a request."""

    async def once(
        request: Request, person: Person, answered: Callable[..., Response], *words: object
    ) -> Response:
        def make(person: Person) -> Awaitable[Response]:
            client, who, given = client_of(request), person.who, (submitter, person)
            return threads.run(client, with_quota, *given, answered, *given, *words, person=who)

        return await forms.once.answer(request, person, make)

    async def answer(request: Request) -> Response:
        person = await forms.token_holder(request, Role.SUBMITTER)
        body = await request.body()
        await forms.still(request)
        sent = await in_turn(request, json_body.read, SentBisection, body)
        if (size := 3 * len(sent.bundle) // 4) > bundle_bytes:
            raise HTTPException(
                413,
                f"Commits have {size >> 10} KiB; the limit is {bundle_bytes >> 10} KiB"
                " (web.patch_kib).",
            )
        # one after the other: two must not both use the remaining quota
        return await once(request, person, _answer, sent)

    async def resumed(request: Request) -> Response:
        person = await forms.token_holder(request, Role.SUBMITTER)
        id = request.path_params["id"]
        ids.read(id, "bisection")
        sent = await in_turn(request, json_body.read, SentResumption, await request.body())
        return await once(request, person, _resumed, sent, id)

    return [
        *acts.routes(PATH, _search(submitter), answer, threads),
        *acts.routes("/bisection/{id}/resume", _resume(submitter), resumed, threads),
    ]


def _search(submitter: BisectionSubmitter) -> Act:
    def plan(person: Person, id: str, sent: SentBisection) -> ActPlan:
        planned, refused = submitter.plan_bisection(_requested(submitter, person, sent))
        return ActPlan(lines=plan_lines(planned), refused=refused)

    def do(person: Person, id: str, sent: SentBisection) -> str:
        started, _ = submitter.start_bisection(_requested(submitter, person, sent))
        return f"/bisection/{started.id}"

    return Act(
        title="Bisect a change",
        about="Both ends are booted again and, if they differ, commits between them, until one is"
        " responsible with a high probability.",
        button="Bisect it",
        sent=SentBisection,
        fields=(
            Field(name="tree", label="Tree", needed=True),
            Field(name="range", label="Range, GOOD..BAD", needed=True),
            Field(name="metric", label="Metric", needed=True),
            Field(name="unit_job", label="Unit job, if several have the metric"),
            Field(name="testbox", label="Testbox or group (default: the tree's first)"),
            Field(name="job", label="Job files (default: those of the tree)", kind="list"),
            Field(name="mail", label="Mail me when it is over", kind="flag"),
        ),
        plan=plan,
        do=do,
        planning=submitter.planning,
        read=_range,
    )


def _range(query: Mapping[str, str]) -> Mapping[str, str]:
    """The range whose ends were chosen one by one."""
    good, bad = query.get("good", ""), query.get("bad", "")
    return {"range": f"{good}..{bad}"} if good and bad else {}


def _resume(submitter: BisectionSubmitter) -> Act:
    def plan(person: Person, id: str, sent: SentResumption) -> ActPlan:
        planned, refused = submitter.plan_resumption(person, _resumption(person, id, sent))
        return ActPlan(
            lines=resumption_lines(id, planned),
            refused=refused,
            pins={"from_boots": planned.limit - planned.boots},
        )

    def do(person: Person, id: str, sent: SentResumption) -> None:
        submitter.resume(person, _resumption(person, id, sent))

    return Act(
        title="Resume {id}",
        about="The search goes on; all its boots still count.",
        button="Resume it",
        sent=SentResumption,
        fields=(
            Field(name="boots", label="Boots at most, in addition", default="50", kind="whole"),
            Field(name="why", label="Why"),
            Field(name="from_boots", kind="whole", pinned=True),
        ),
        plan=plan,
        do=do,
        planning=submitter.planning,
    )


def _resumption(person: Person, id: str, sent: SentResumption) -> ResumeRequest:
    return ResumeRequest(
        id=id, boots=sent.boots, from_boots=sent.from_boots, by=person, why=sent.why
    )


def _answer(submitter: BisectionSubmitter, person: Person, sent: SentBisection) -> Response:
    document: dict[str, Any] = {"id": None}
    status, headers = HTTPStatus.OK, {}
    try:
        with submitter.planning(person):
            request = _requested(submitter, person, sent)
            if sent.dry_run:
                planned, document["refused"] = submitter.plan_bisection(request)
            else:
                started, planned = submitter.start_bisection(request)
                document |= {"id": started.id, "new": started.new}
                headers = {"location": f"/bisection/{started.id}"}
                status = HTTPStatus.CREATED if started.new else HTTPStatus.OK
    except REFUSALS as error:
        return refused(error)
    plan = {"plan": planned.to_json(), "lines": plan_lines(planned)}
    return JSONResponse(document | plan, status, headers)


def _resumed(
    submitter: BisectionSubmitter, person: Person, sent: SentResumption, id: str
) -> Response:
    document: dict[str, Any] = {"id": id}
    request = _resumption(person, id, sent)
    try:
        with submitter.planning(person):
            if sent.dry_run:
                planned, document["refused"] = submitter.plan_resumption(person, request)
            else:
                planned = submitter.resume(person, request)
    except REFUSALS as error:
        return refused(error)
    plan = {"plan": planned.to_json(id), "lines": resumption_lines(id, planned)}
    return JSONResponse(document | plan)


def _requested(
    submitter: BisectionSubmitter, person: Person, sent: SentBisection
) -> BisectionRequest:
    """Raises RequestError."""
    good, dots, bad = sent.range.partition("..")
    if not dots or not good or not bad:
        raise RequestError(f"{sent.range[:80]}: write the range as GOOD..BAD")
    try:
        commits = sent.sent_commits()
    except BadBundle as error:
        raise RequestError(f"the bundle is refused: {error}") from None
    return BisectionRequest(
        tree=sent.tree,
        good=good,
        bad=bad,
        metric=sent.metric,
        unit_job=sent.unit_job,
        testbox=sent.testbox,
        job_files=submitter.job_files(sent.job),
        overrides=sent.set,
        asked_by=person,
        mail=sent.mail,
        sent=commits,
    )
