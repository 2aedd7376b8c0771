"""Request a table of kernels: a form that shows plan and cost before queueing, and the same as
JSON. The form has two doors: comparisons and experiments are requested at addresses of their own.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Final, Literal, Protocol
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.limits import LOOKS, TABLE_BOOTS
from swingbot.core.model import ids
from swingbot.core.model.records import JobFile
from swingbot.core.patchset.bundle import BadBundle, SentCommits
from swingbot.core.patchset.model import PatchSeries, PatchSource, SeriesError
from swingbot.core.patchset.read import one_file
from swingbot.core.report.table.columns import COLUMNS
from swingbot.core.table.layout import DEFAULT_BOOTS
from swingbot.core.table.references import RULES, in_words
from swingbot.core.table.request_document import SentRow
from swingbot.service.asked.asker import NotYours
from swingbot.service.asked.requested import Requested
from swingbot.service.ports import GitError, RequestError
from swingbot.service.table.kernels import (
    NO_PATCHES,
    KernelRequest,
    NamedKernel,
    at,
    ends_of,
    patched,
)
from swingbot.service.table.plan import TablePlan
from swingbot.service.table.plan_text import plan_lines
from swingbot.service.table.request import TableRequest
from swingbot.web.access.forms import FORM_HEADERS, Forms, same_site
from swingbot.web.http.fair_threads import FairThreads, client_of, in_turn
from swingbot.web.http.render import Renderer
from swingbot.web.pages.form_body import (
    FILES,
    LISTS,
    TEXTS,
    Submitted,
    read_form,
    read_json,
)
from swingbot.web.pages.quota_left import Charging, with_quota
from swingbot.web.pages.refused import REFUSALS, OverQuota, refused
from swingbot.web.pages.table_choices import TableChoices


class TableSubmitter(Charging, Protocol):
    """Implemented by `swingbot.app.submitter.DatabaseSubmitter`.

    Raises RequestError for requests that make no table.
    """

    def planning(self, person: Person) -> AbstractContextManager[None]:
        """Count the time of the block for the person. Raises OverQuota."""
        ...

    def choices(self, tree: str, testboxes: Sequence[str], jobs: Sequence[str]) -> TableChoices: ...
    def job_files(self, names: Sequence[str]) -> list[JobFile]: ...
    def series(self, sources: Sequence[PatchSource], *, stack: bool) -> PatchSeries:
        """Read patches. Raises SeriesError."""
        ...

    def plan(self, person: Person, request: TableRequest) -> tuple[TablePlan, str | None]:
        """Return the plan, and the reason if the quota would reject it."""
        ...

    def ask(self, person: Person, request: TableRequest) -> tuple[Requested, TablePlan]:
        """Queue the request. Raises OverQuota."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """An address of the form."""

    path: str
    kind: Literal["asked", "experiment"]
    title: str


DOORS: Final = (
    Door(path="/compare", kind="asked", title="Compare kernels"),
    Door(path="/experiment", kind="experiment", title="Measure many kernels in one table"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubmittedForm:
    """What was sent through a door, and by whom."""

    door: Door
    request: Request
    person: Person
    sent: Submitted


class TableForm:
    """`patch_bytes` is the size limit of the patches of a request; `threads` plan requests."""

    def __init__(
        self,
        renderer: Renderer,
        forms: Forms,
        submitter: TableSubmitter,
        patch_bytes: int,
        threads: FairThreads,
    ) -> None:
        self._renderer, self._forms, self._submitter = renderer, forms, submitter
        self._patch_bytes, self._threads = patch_bytes, threads

    def routes(self) -> list[Route]:
        return [
            route
            for door in DOORS
            for route in (
                Route(door.path, self._shown_at(door), methods=["GET"]),
                Route(door.path, self._asked_at(door), methods=["POST"]),
            )
        ]

    def _shown_at(self, door: Door) -> Callable[[Request], Response]:
        """Show the form, filled in by the query of the address."""

        def show(request: Request) -> Response:
            given = {name: ",".join(request.query_params.getlist(name)) for name in TEXTS}
            return self._chosen(door, request, Submitted(values=given))

        return show

    def _chosen(self, door: Door, request: Request, sent: Submitted) -> Response:
        """The form with what was chosen so far, and why it makes no request."""
        try:
            sent.check()
        except RequestError as error:
            return self._page(door, request, sent, f"{error}", status=400)
        return self._page(door, request, sent)

    def _asked_at(self, door: Door) -> Callable[[Request], Awaitable[Response]]:
        async def ask(request: Request) -> Response:
            kind = request.headers.get("content-type", "")
            by_script = kind.startswith("application/json")
            holder = self._forms.token_holder if by_script else self._forms.person
            person, body = await holder(request, Role.SUBMITTER), await request.body()
            await self._forms.still(request)
            if by_script:
                sent, dry_run = await in_turn(request, read_json, body, self._patch_bytes)

                def make(person: Person) -> Awaitable[Response]:
                    form = _SubmittedForm(door=door, request=request, person=person, sent=sent)
                    return self._in_turn(form, self._answer_script, dry_run)

                return await self._forms.once.answer(request, person, make)
            same_site(request)
            sent = await in_turn(request, read_form, kind, body, self._patch_bytes)
            self._forms.check(request, sent.values)
            form = _SubmittedForm(door=door, request=request, person=person, sent=sent)
            return await self._in_turn(form, self._answer_form)

        return ask

    async def _in_turn(
        self, form: _SubmittedForm, answer: Callable[..., Response], *words: object
    ) -> Response:
        """Answer the requests of a person one after the other: two must not both use the remaining
        quota. Those of another person are answered meanwhile.
        """
        client, person = client_of(form.request), form.person.who
        return await self._threads.run(client, answer, form, *words, person=person)

    def _answer_form(self, form: _SubmittedForm) -> Response:
        def page(problem: str, plan: TablePlan | None = None, status: int = 200) -> Response:
            return self._page(form.door, form.request, form.sent, problem, plan, status)

        if form.sent.values.get("act") == "choose":
            return self._chosen(form.door, form.request, form.sent)
        try:
            with self._submitter.planning(form.person):
                request = self._requested(form)
                if form.sent.values.get("act") == "ask":
                    queued, _ = self._submitter.ask(form.person, request)
                    return RedirectResponse(_address(queued.id), status_code=HTTPStatus.SEE_OTHER)
                plan, why = self._submitter.plan(form.person, request)
        except (RequestError, GitError) as error:
            return page(f"{error}. Nothing was queued.", status=400)
        except NotYours as error:
            return page(f"{error}", status=403)
        except OverQuota as error:
            return page(f"{error}. Nothing was queued.", status=429)
        return page(why or "", plan)

    def _answer_script(self, form: _SubmittedForm, dry_run: bool) -> Response:
        given = (self._submitter, form.person, self._answer_json, form, dry_run)
        return with_quota(*given)

    def _answer_json(self, form: _SubmittedForm, dry_run: bool) -> Response:
        try:
            with self._submitter.planning(form.person):
                request = self._requested(form)
                if dry_run:
                    plan, why = self._submitter.plan(form.person, request)
                    document = {"id": None, "refused": why}
                    return JSONResponse(document | self._facts(form, request, plan))
                queued, plan = self._submitter.ask(form.person, request)
        except REFUSALS as error:
            return refused(error)
        return JSONResponse(
            {"id": queued.id, "new": queued.new} | self._facts(form, request, plan),
            status_code=201 if queued.new else 200,
            headers={"location": _address(queued.id)},
        )

    def _facts(
        self, form: _SubmittedForm, request: TableRequest, plan: TablePlan
    ) -> dict[str, Any]:
        used, quota = self._submitter.used(form.person)
        stacks = [row.series for row in request.kernels.rows]
        return {
            "plan": plan.to_json(),
            "lines": plan_lines(plan),
            "patches": [patch.subject for stack in stacks for patch in stack.patches],
            "left_out": [asdict(letter) for stack in stacks for letter in stack.left_out],
            "used": asdict(used),
            "quota": asdict(quota) if quota else None,
        }

    def _requested(self, form: _SubmittedForm) -> TableRequest:
        """Raises RequestError for fields that are missing, too long or malformed."""
        sent = form.sent
        if not sent.text("tree"):
            raise RequestError("tree is missing; a table needs a tree and its kernels")
        return TableRequest(
            kernels=self._kernels(sent),
            tree=sent.text("tree"),
            axes=sent.table.layout_axes,
            exclude=sent.table.exclude,
            overrides=sent.table.set,
            against=sent.listed("against"),
            columns=sent.listed("with"),
            job_files=self._submitter.job_files(sent.listed("job")),
            testboxes=sent.listed("testbox"),
            boots=sent.number("boots", DEFAULT_BOOTS, TABLE_BOOTS),
            min_effect_pct=sent.percent("min_effect"),
            looks=sent.number("looks", 1, LOOKS),
            private_to=sent.listed("private_to") or None,
            mail=sent.flag("mail"),
            kind=form.door.kind,
            sent=self._commits(sent),
        )

    def _commits(self, sent: Submitted) -> SentCommits:
        try:
            return sent.table.sent_commits()
        except BadBundle as error:
            raise RequestError(f"the bundle is refused: {error}", key="range") from None

    def _kernels(self, sent: Submitted) -> KernelRequest:
        range_, base = sent.text("range"), sent.text("base") or None
        ends = ends_of(range_) if range_ else None
        rows = [at(ref) for ref in sent.listed("head")]
        if (series := self._patches(sent, "series")).patches:
            rows.append(NamedKernel(name="", series=series, each=True))
        if (stack := self._patches(sent, "patch")).patches:
            rows = patched(rows, stack, ends[1] if ends else base)
        rows += [self._sent_row(row) for row in sent.table.rows]
        return KernelRequest(range=ends, base=base, rows=rows, paths=sent.table.paths)

    def _sent_row(self, row: SentRow) -> NamedKernel:
        """Raises RequestError for anything but a commit or text patches."""
        if row.each and not row.patches:
            raise RequestError(f"{row.name}: `each` needs patches".removeprefix(": "))
        sources = [source.source() for source in row.patches]
        try:
            series = self._submitter.series(sources, stack=not row.each) if sources else NO_PATCHES
        except SeriesError as error:
            raise RequestError(f"{row.name}: {error}" if row.name else str(error)) from None
        if not row.each and not row.name.strip():
            raise RequestError("one of `rows` has no name")
        return NamedKernel(name=row.name, ref=row.ref, series=series, each=row.each)

    def _patches(self, sent: Submitted, name: str) -> PatchSeries:
        """Raises RequestError for anything but a series of text patches."""
        if name not in sent.files:
            return NO_PATCHES
        try:
            file = f"{name} of a web request"
            return self._submitter.series([one_file(file, sent.files[name])], stack=name == "patch")
        except SeriesError as error:
            raise RequestError(str(error)) from None

    def _page(
        self,
        door: Door,
        request: Request,
        sent: Submitted,
        problem: str = "",
        plan: TablePlan | None = None,
        status: int = 200,
    ) -> Response:
        context = self._forms.context(request, Role.SUBMITTER)
        if request.url.query:
            context["here"] = quote(f"{request.url.path}?{request.url.query}")
        if context["who"]:
            used, quota = self._submitter.used(context["person"])
            choices = self._submitter.choices(*_chosen(sent))
            if choices.problem and not problem and plan is None:
                problem, status = choices.problem, HTTPStatus.BAD_REQUEST
            context |= {
                "choices": choices,
                "used": used,
                "quota": quota,
            }
        values = {name: sent.values.get(name, "") for name in TEXTS}
        page = self._renderer.page(
            "table_form.html",
            status=status,
            door=door,
            problem=problem,
            plan=plan,
            patch_kib=self._patch_bytes >> 10,
            values=values,
            chosen={name: _parts(values[name]) for name in LISTS},
            rules=RULES,
            columns=list(COLUMNS),
            in_words=in_words,
            boots=DEFAULT_BOOTS,
            files={name: base64.b64encode(sent.files.get(name, b"")).decode() for name in FILES},
            sizes={name: len(sent.files.get(name, b"")) for name in FILES},
            **context,
        )
        page.headers.update(FORM_HEADERS)
        return page


def _parts(value: str) -> list[str]:
    return [part for part in map(str.strip, value.split(",")) if part]


def _chosen(sent: Submitted) -> tuple[str, list[str], list[str]]:
    """Return tree, testboxes and jobs; nothing of a field that is refused."""
    try:
        return sent.text("tree"), sent.listed("testbox"), sent.listed("job")
    except RequestError:
        return "", [], []


def _address(id: str) -> str:
    return f"/{ids.read(id)[0]}/{id}"
