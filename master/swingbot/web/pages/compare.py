"""Request a comparison: a form that shows the cost before queueing, and the same as JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from io import BytesIO
from typing import Any, Final, Protocol
from urllib.parse import quote

import multipart  # type: ignore[import-untyped]  # has no type annotations
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.access.quota import Quota, QuotaUsage
from swingbot.core.access.roles import Person, Role
from swingbot.core.model.records import JobFile
from swingbot.core.patchset.model import PatchSeries, SeriesError
from swingbot.core.patchset.read import read_file
from swingbot.core.stats.looks import MOST_LOOKS
from swingbot.service.ports import GitError, RequestError
from swingbot.service.table.request import ComparisonRequest
from swingbot.service.table.submit import RequestCost

from ..access.forms import FORM_HEADERS, Forms, same_site
from ..access.session import bearer_of
from ..http import json_body
from ..http.render import Renderer

_FIELDS: Final = ("tree", "base", "head", "job", "testbox", "boots", "looks")
_LONGEST: Final = 300  # characters of a field
_PATCH_NAME: Final = "patch of a web request"  # also its subject if it has none


class OverQuota(Exception):
    """The person's quota is used up; the message says how and until when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedComparison:
    id: str
    new: bool  # False: the same request for the same kernels already existed
    cost: RequestCost


class ComparisonSubmitter(Protocol):
    """Implemented by `swingbot.app.submitter.DatabaseSubmitter`.

    Raises RequestError for requests that make no sense.
    """

    def choices(self) -> dict[str, list[str]]: ...
    def job_files(self, names: Sequence[str]) -> list[JobFile]: ...
    def used(self, person: Person) -> tuple[QuotaUsage, Quota | None]: ...
    def latest(self, person: Person) -> list[dict[str, Any]]: ...
    def foresee(
        self, person: Person, spec: ComparisonRequest
    ) -> tuple[RequestCost, str | None]: ...
    def ask(self, person: Person, spec: ComparisonRequest) -> SubmittedComparison: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Fields of a form: texts, a file, and at most `parts` parts.

    Of the texts, `lists` may be repeated and `numbers` are numbers in JSON.
    """

    texts: tuple[str, ...]
    file: str
    lists: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ("boots", "looks")
    parts: int = 20

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the same form as JSON."""
        return frozenset((*self.texts, self.file, "dry_run"))


_COMPARE: Final = Fields(texts=_FIELDS, file="patch")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedForm:
    """Fields of the form, repeated values joined with commas, and the patch if there is one."""

    values: Mapping[str, str]
    patch: bytes | None = None


class ComparePages:
    """`patch_bytes` is the size limit of a patch."""

    def __init__(
        self, renderer: Renderer, forms: Forms, submitter: ComparisonSubmitter, patch_bytes: int
    ) -> None:
        self._renderer, self._forms, self._submitter, self._patch_bytes = (
            renderer,
            forms,
            submitter,
            patch_bytes,
        )

    def routes(self) -> list[Route]:
        return [
            Route("/compare", self.show, methods=["GET"]),
            Route("/compare", self.ask, methods=["POST"]),
        ]

    def show(self, request: Request) -> Response:
        """Show the form, filled in by the query of the address."""
        given = {name: request.query_params.get(name, "") for name in _FIELDS}
        values = {name: text for name, text in given.items() if len(text) <= _LONGEST}
        return self._page(request, SubmittedForm(values=values))

    def _page(
        self,
        request: Request,
        sent: SubmittedForm,
        *,
        problem: str = "",
        cost: RequestCost | None = None,
        series: PatchSeries | None = None,
        status: int = 200,
    ) -> Response:
        context = self._forms.context(request, Role.SUBMITTER)
        if request.url.query:
            context["here"] = quote(f"{request.url.path}?{request.url.query}")
        person = context["person"] if context["who"] else None
        if person is not None:
            used, quota = self._submitter.used(person)
            context |= {
                "choices": self._submitter.choices(),
                "used": used,
                "quota": quota,
                "latest": self._submitter.latest(person),
            }
        patch_base64 = base64.b64encode(sent.patch).decode() if sent.patch else ""
        more: dict[str, Any] = {
            "values": {name: sent.values.get(name, "") for name in _FIELDS},
            "kept": patch_base64,
            "patch_size": len(sent.patch or b""),
        }
        page = self._renderer.page(
            "compare.html",
            status=status,
            problem=problem,
            cost=cost,
            series=series,
            patch_kib=self._patch_bytes >> 10,
            **more,
            **context,
        )
        page.headers.update(FORM_HEADERS)
        return page

    async def ask(self, request: Request) -> Response:
        person = await self._forms.person(request, Role.SUBMITTER)
        if request.headers.get("content-type", "").startswith("application/json"):
            return await self._by_json(request, person)
        same_site(request)
        sent = read_form(
            request.headers.get("content-type", ""), await request.body(), self._patch_bytes
        )
        self._forms.check(request, sent.values)
        return await run_in_threadpool(self._by_form, request, person, sent)

    def _by_form(self, request: Request, person: Person, sent: SubmittedForm) -> Response:
        try:
            series = series_of(sent)
            spec = self._spec(sent, series)
            if sent.values.get("act") == "ask":
                return RedirectResponse(
                    f"/comparison/{self._submitter.ask(person, spec).id}",
                    status_code=HTTPStatus.SEE_OTHER,
                )
            cost, refused = self._submitter.foresee(person, spec)
        except (RequestError, GitError) as error:
            return self._page(request, sent, problem=f"{error}. Nothing was queued.", status=400)
        except OverQuota as error:
            return self._page(request, sent, problem=f"{error}. Nothing was queued.", status=429)
        return self._page(request, sent, cost=cost, series=series, problem=refused or "")

    async def _by_json(self, request: Request, person: Person) -> Response:
        if bearer_of(request) is None:
            raise HTTPException(
                403, "JSON requests need a token: send `Authorization: Bearer <token>`."
            )
        sent, dry_run = read_json(await request.body(), self._patch_bytes)
        return await run_in_threadpool(self._answer_json, person, sent, dry_run)

    def _answer_json(self, person: Person, sent: SubmittedForm, dry_run: bool) -> Response:
        try:
            series = series_of(sent)
            spec = self._spec(sent, series)
            if dry_run:
                cost, refused = self._submitter.foresee(person, spec)
                return JSONResponse(
                    {
                        "id": None,
                        "foreseen": asdict(cost),
                        "refused": refused,
                        **series_facts(series),
                        **self._left(person),
                    }
                )
            submitted = self._submitter.ask(person, spec)
        except (RequestError, GitError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except OverQuota as error:
            return JSONResponse({"error": str(error)}, status_code=429)
        facts = {
            "id": submitted.id,
            "new": submitted.new,
            "foreseen": asdict(submitted.cost),
            **series_facts(series),
            **self._left(person),
        }
        return JSONResponse(
            facts,
            status_code=201 if submitted.new else 200,
            headers={"location": f"/comparison/{submitted.id}"},
        )

    def _left(self, person: Person) -> dict[str, Any]:
        used, quota = self._submitter.used(person)
        return {
            "used": asdict(used),
            "quota": asdict(quota) if quota else None,
        }

    def _spec(self, sent: SubmittedForm, series: PatchSeries) -> ComparisonRequest:
        """Raises RequestError for fields that are missing, too long or not a valid number."""
        text = texts_of(sent, _FIELDS)
        for name in ("tree", "base", "head"):
            if not text[name]:
                raise RequestError(f"{name} is missing; a comparison needs tree, base and head")
        jobs = self._submitter.job_files([name for name in text["job"].split(",") if name])
        testboxes = [name for name in text["testbox"].split(",") if name]
        return ComparisonRequest(
            tree=text["tree"],
            base=text["base"],
            head=text["head"],
            job_files=jobs,
            testboxes=testboxes,
            boots=boots_of(text["boots"]),
            looks=looks_of(text["looks"]),
            patches=series.patches,
        )


def texts_of(sent: SubmittedForm, names: Sequence[str]) -> dict[str, str]:
    """Return the fields `names`, stripped. Raises RequestError if one is too long."""
    fields_ = {name: sent.values.get(name, "").strip() for name in names}
    for name, value in fields_.items():
        if len(value) > _LONGEST:
            raise RequestError(f"{name} has {len(value)} characters; the limit is {_LONGEST}")
    return fields_


def boots_of(text: str) -> int | None:
    """Return the number of boots; None if the field is empty. Raises RequestError."""
    if text and not _is_count(text):
        raise RequestError(f"boots must be the number of boots per kernel, not {text[:40]!r}")
    return int(text) if text else None


def looks_of(text: str) -> int:
    """Return the number of looks; 1 if the field is empty. Raises RequestError."""
    if not text:
        return 1
    if not _is_count(text) or not 1 <= int(text) <= MOST_LOOKS:
        raise RequestError(
            f"looks must be how often the result may be judged, from 1 to {MOST_LOOKS},"
            f" not {text[:40]!r}"
        )
    return int(text)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5


def series_of(sent: SubmittedForm) -> PatchSeries:
    """Raises RequestError for anything but a series of text patches."""
    if not sent.patch:
        return PatchSeries(patches=())
    try:
        return read_file(_PATCH_NAME, sent.patch)
    except SeriesError as error:
        raise RequestError(str(error)) from None


def series_facts(series: PatchSeries) -> dict[str, Any]:
    """Subjects of the patches that are applied, and of those that are not."""
    return {
        "patches": [patch.subject for patch in series.patches],
        "left_out": [asdict(letter) for letter in series.left_out],
    }


def read_form(kind: str, body: bytes, patch_bytes: int, fields: Fields = _COMPARE) -> SubmittedForm:
    """Read a multipart/form-data form. Raises HTTPException.

    The patch is in the file field or, carried over from the previous page, in the field `kept`.
    """
    media_type, options = multipart.parse_options_header(kind)
    if media_type != "multipart/form-data" or not options.get("boundary"):
        raise HTTPException(400, "The form is malformed; nothing was queued.")
    limits = {
        "part_limit": fields.parts,
        "memory_limit": len(body) + 1,
        "spool_limit": len(body) + 1,
        "partsize_limit": 2 * patch_bytes,
        "header_limit": 4,
    }
    try:
        values: dict[str, bytes] = {}
        for part in multipart.MultipartParser(
            BytesIO(body), options["boundary"], content_length=len(body), **limits
        ):
            before = values.get(part.name) if part.name in fields.lists else None
            values[part.name] = part.raw if before is None else b",".join((before, part.raw))
        text = {
            name: value.decode("utf-8") for name, value in values.items() if name != fields.file
        }
        patch = values.get(fields.file) or base64.b64decode(text.pop("kept", ""), validate=True)
    except (multipart.MultipartError, UnicodeDecodeError, binascii.Error, ValueError):
        raise HTTPException(400, "The form is malformed; nothing was queued.") from None
    return SubmittedForm(
        values={name: value.replace("\0", "") for name, value in text.items()},
        patch=_fitting(patch, patch_bytes),
    )


def read_json(
    body: bytes, patch_bytes: int, fields: Fields = _COMPARE
) -> tuple[SubmittedForm, bool]:
    """Return a script's request and whether it is a dry run. Raises HTTPException."""
    try:
        document = json_body.parse(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"The request body is not valid JSON: {error}"[:200]) from None
    if not isinstance(document, dict) or not set(document) <= fields.keys:
        raise HTTPException(
            400, f"Send an object with only these keys: {', '.join(sorted(fields.keys))}."
        )
    dry_run, patch = document.pop("dry_run", False), document.pop(fields.file, None)
    numbers = {name: document.pop(name, None) for name in fields.numbers}
    if (
        not isinstance(dry_run, bool)
        or not isinstance(patch, str | None)
        or not all(number is None or type(number) is int for number in numbers.values())
    ):
        raise HTTPException(
            400,
            f"dry_run must be true or false, {' and '.join(fields.numbers)} numbers,"
            f" {fields.file} a string.",
        )
    values = {
        name: ",".join(value)
        if isinstance(value, list) and all(isinstance(one, str) for one in value)
        else value
        for name, value in document.items()
    }
    if not all(isinstance(value, str) for value in values.values()):
        lists = fields.lists or ("job", "testbox")
        raise HTTPException(
            400,
            f"{', '.join(name for name in fields.texts if name not in numbers)} must be strings;"
            f" {' and '.join(lists)} may be lists of strings.",
        )
    encoded = patch.encode("utf-8", "replace") if patch else None
    return SubmittedForm(
        values=values
        | {name: str(number) for name, number in numbers.items() if number is not None},
        patch=_fitting(encoded, patch_bytes),
    ), dry_run


def _fitting(patch: bytes | None, most: int) -> bytes | None:
    if patch and len(patch) > most:
        raise HTTPException(
            413,
            f"The patch has {len(patch) >> 10} KiB; the limit is {most >> 10} KiB (web.patch_kib).",
        )
    return patch or None
