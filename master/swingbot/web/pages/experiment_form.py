"""Request an experiment: a form that shows plan and cost first, and the same as JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol, get_args

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.access.quota import Quota, QuotaUsage
from swingbot.core.access.roles import Person, Role
from swingbot.core.model.records import JobFile
from swingbot.core.model.statuses import ReferenceRule
from swingbot.core.patchset.model import PatchSeries
from swingbot.core.table.references import WORDS
from swingbot.service.ports import GitError, RequestError
from swingbot.service.table.experiment import DEFAULT_BOOTS, ExperimentRequest, Planned
from swingbot.service.table.kernels import KernelRequest

from ..access.forms import FORM_HEADERS, Forms, same_site
from ..access.session import bearer_of
from ..http.render import Renderer
from .compare import (
    Fields,
    OverQuota,
    SubmittedForm,
    boots_of,
    looks_of,
    read_form,
    read_json,
    series_facts,
    series_of,
    texts_of,
)

_FIELDS: Final = Fields(
    texts=("tree", "range", "base", "job", "testbox", "against", "boots", "looks"),
    file="series",
    lists=("job", "testbox", "against"),
    parts=200,
)
_RULES: Final[tuple[ReferenceRule, ...]] = get_args(ReferenceRule)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedExperiment:
    id: str
    new: bool  # False: the same request already existed
    planned: Planned


class ExperimentSubmitter(Protocol):
    """Implemented by `swingbot.app.submitter.DatabaseSubmitter`.

    Raises RequestError for requests that make no table.
    """

    def choices(self) -> dict[str, list[str]]: ...
    def job_files(self, names: Sequence[str]) -> list[JobFile]: ...
    def used(self, person: Person) -> tuple[QuotaUsage, Quota | None]: ...
    def latest_experiments(self, person: Person) -> list[dict[str, Any]]: ...
    def plan(self, person: Person, spec: ExperimentRequest) -> tuple[Planned, str | None]: ...
    def plan_facts(self, planned: Planned) -> dict[str, Any]: ...
    def ask_experiment(self, person: Person, spec: ExperimentRequest) -> SubmittedExperiment: ...


class ExperimentForm:
    """`series_bytes` is the size limit of a series."""

    def __init__(
        self, renderer: Renderer, forms: Forms, submitter: ExperimentSubmitter, series_bytes: int
    ) -> None:
        self._renderer, self._forms, self._submitter = renderer, forms, submitter
        self._series_bytes = series_bytes

    def routes(self) -> list[Route]:
        return [
            Route("/experiment", self.show, methods=["GET"]),
            Route("/experiment", self.ask, methods=["POST"]),
        ]

    def show(self, request: Request) -> Response:
        return self._page(request, SubmittedForm(values={}))

    async def ask(self, request: Request) -> Response:
        person = await self._forms.person(request, Role.SUBMITTER)
        kind = request.headers.get("content-type", "")
        if kind.startswith("application/json"):
            if bearer_of(request) is None:
                raise HTTPException(
                    403, "JSON requests need a token: send `Authorization: Bearer <token>`."
                )
            sent, dry_run = read_json(await request.body(), self._series_bytes, _FIELDS)
            return await run_in_threadpool(self._answer_json, person, sent, dry_run)
        same_site(request)
        sent = read_form(kind, await request.body(), self._series_bytes, _FIELDS)
        self._forms.check(request, sent.values)
        return await run_in_threadpool(self._answer_form, request, person, sent)

    def _answer_form(self, request: Request, person: Person, sent: SubmittedForm) -> Response:
        try:
            series = series_of(sent)
            spec = self._spec(sent, series)
            if sent.values.get("act") == "ask":
                submitted = self._submitter.ask_experiment(person, spec)
                return RedirectResponse(
                    f"/experiment/{submitted.id}", status_code=HTTPStatus.SEE_OTHER
                )
            planned, refused = self._submitter.plan(person, spec)
        except (RequestError, GitError) as error:
            return self._page(request, sent, problem=f"{error}. Nothing was queued.", status=400)
        except OverQuota as error:
            return self._page(request, sent, problem=f"{error}. Nothing was queued.", status=429)
        return self._page(request, sent, plan=planned, series=series, problem=refused or "")

    def _answer_json(self, person: Person, sent: SubmittedForm, dry_run: bool) -> Response:
        try:
            series = series_of(sent)
            spec = self._spec(sent, series)
            if dry_run:
                planned, refused = self._submitter.plan(person, spec)
                facts = {"id": None, "refused": refused}
                return JSONResponse(facts | self._facts(person, planned, series))
            submitted = self._submitter.ask_experiment(person, spec)
        except (RequestError, GitError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except OverQuota as error:
            return JSONResponse({"error": str(error)}, status_code=429)
        return JSONResponse(
            {"id": submitted.id, "new": submitted.new}
            | self._facts(person, submitted.planned, series),
            status_code=201 if submitted.new else 200,
            headers={"location": f"/experiment/{submitted.id}"},
        )

    def _facts(self, person: Person, planned: Planned, series: PatchSeries) -> dict[str, Any]:
        used, quota = self._submitter.used(person)
        return {
            "plan": self._submitter.plan_facts(planned),
            **series_facts(series),
            "used": asdict(used),
            "quota": asdict(quota) if quota else None,
        }

    def _spec(self, sent: SubmittedForm, series: PatchSeries) -> ExperimentRequest:
        """Raises RequestError for fields that are missing, too long or malformed."""
        text = texts_of(sent, _FIELDS.texts)
        if not text["tree"]:
            raise RequestError("tree is missing; an experiment needs a tree and its kernels")
        boots = boots_of(text["boots"])
        return ExperimentRequest(
            kernels=KernelRequest(
                range=_range(text["range"]),
                base=text["base"] or None,
                series=series if series.patches else None,
            ),
            tree=text["tree"],
            against=[_rule(name) for name in _listed(text["against"])],
            job_files=self._submitter.job_files(_listed(text["job"])),
            testboxes=_listed(text["testbox"]),
            boots=DEFAULT_BOOTS if boots is None else boots,
            looks=looks_of(text["looks"]),
        )

    def _page(
        self,
        request: Request,
        sent: SubmittedForm,
        *,
        problem: str = "",
        plan: Planned | None = None,
        series: PatchSeries | None = None,
        status: int = 200,
    ) -> Response:
        context = self._forms.context(request, Role.SUBMITTER)
        if context["who"]:
            person = context["person"]
            used, quota = self._submitter.used(person)
            context |= {
                "choices": self._submitter.choices(),
                "used": used,
                "quota": quota,
                "latest": self._submitter.latest_experiments(person),
            }
        values = {name: sent.values.get(name, "") for name in _FIELDS.texts}
        page = self._renderer.page(
            "experiment_form.html",
            status=status,
            problem=problem,
            plan=plan,
            series=series,
            series_kib=self._series_bytes >> 10,
            values=values,
            chosen={name: _listed(values[name]) for name in _FIELDS.lists},
            rules=WORDS,
            boots=DEFAULT_BOOTS,
            kept=base64.b64encode(sent.patch).decode() if sent.patch else "",
            series_size=len(sent.patch or b""),
            **context,
        )
        page.headers.update(FORM_HEADERS)
        return page


def _listed(text: str) -> list[str]:
    """Split values at commas, without duplicates."""
    return list(dict.fromkeys(one for part in text.split(",") if (one := part.strip())))


def _range(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    first, dots, last = text.partition("..")
    if not dots or not first or not last or last.startswith("."):
        raise RequestError(f"{text[:80]!r} is not a range of commits: write it as A..B")
    return first, last


def _rule(name: str) -> ReferenceRule:
    for rule in _RULES:
        if rule == name:
            return rule
    raise RequestError(f"{name[:40]!r} is not a valid reference; use one of {', '.join(_RULES)}")
