"""Acts as forms that need no script.

A GET of the act's address shows what it does and costs, and a button; a POST of that form makes the
change and leads to what it is about. What a script posts there with its token is JSON, the API's.

A form carries what its page was computed for (`ActPlan.pins`). One that is sent again, or after
somebody else changed the same, changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.limits import FIELD_CHARACTERS
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound
from swingbot.service.asked.asker import NotYours
from swingbot.service.asked.requested import AlreadyDone
from swingbot.service.ports import GitError, RequestError
from swingbot_jobs import codec

from ..access.forms import FORM_HEADERS, Forms, bounded
from ..access.session import bearer_of
from ..http.fair_threads import FairThreads, client_of
from ..http.render import Renderer
from .refused import REFUSALS, OverQuota

Answer = Callable[[Request], Awaitable[Response]]
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of an act's document, as a form has it; a list is separated by spaces or commas.

    `pinned`: not typed by a person, but given by `ActPlan.pins` or by the link to the page.
    """

    name: str
    label: str = ""
    default: str = ""
    kind: Literal["text", "whole", "decimal", "list", "flag"] = "text"
    needed: bool = False
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ActPlan:
    """What an act would do and cost, in lines; `refused`: why the quota rejects it."""

    lines: Sequence[str]
    refused: str | None = None
    pins: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """`plan` and `do` get the person, the id of the address, and the document `sent` of the form.

    `do` returns the address of what it made, None if it changed what the address is about. Both
    raise REFUSALS, `do` AlreadyDone.
    `planning` counts the time of both for the person, `read` returns values of `fields` from the
    query of the address. `{id}` in `title` stands for the id, or for the name of a testbox.
    """

    title: str
    about: str
    button: str
    sent: type
    fields: Sequence[Field]
    plan: Callable[[Person, str, Any], ActPlan]
    do: Callable[[Person, str, Any], str | None]
    planning: Callable[[Person], AbstractContextManager[None]] = lambda person: nullcontext()
    # what a link or form has in other fields than the document
    read: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda given: {}
    role: Role = Role.SUBMITTER


class ActPages:
    """The pages of acts, and their forms. `check_exists` raises NotFound for an unknown id."""

    def __init__(
        self, renderer: Renderer, forms: Forms, check_exists: Callable[[str], object]
    ) -> None:
        self._renderer, self._forms, self._check_exists = renderer, forms, check_exists

    def routes(self, path: str, act: Act, api: Answer, threads: FairThreads) -> list[Route]:
        """`api` answers JSON; the acts of a person follow each other in `threads`."""

        async def show(request: Request) -> Response:
            person = await self._forms.visitor(request)
            query = {**request.query_params, **act.read(request.query_params)}
            values = {one.name: query.get(one.name, "") for one in act.fields}
            client, who = client_of(request), person.who if person else None
            return await threads.run(client, self._shown, request, act, values, person=who)

        async def answer(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip()
            if bearer_of(request) is not None or kind != _FORM:  # curl calls its JSON a form
                return await api(request)
            form = await self._forms.read(request, act.role)
            values = {one.name: form.values.get(one.name, "") for one in act.fields}
            client, who = client_of(request), form.who
            return await threads.run(
                client, self._done, request, act, values, form.person, person=who
            )

        return [Route(path, show, methods=["GET"]), Route(path, answer, methods=["POST"])]

    def _shown(self, request: Request, act: Act, given: Mapping[str, str]) -> Response:
        if (id := _id(request)) and "id" in request.path_params:
            self._check_exists(id)
        values = {one.name: given[one.name] or one.default for one in act.fields}
        context = self._forms.context(request, act.role)
        person = context["person"]
        if not context["who"] or any(one.needed and not values[one.name] for one in act.fields):
            return self._page(request, act, values, context=context)
        try:
            with act.planning(person):
                plan = act.plan(person, id, _document(act, values))
        except REFUSALS as error:
            return self._page(request, act, values, error=error, context=context)
        return self._page(request, act, values, plan=plan, context=context)

    def _done(
        self, request: Request, act: Act, values: Mapping[str, str], person: Person
    ) -> Response:
        try:
            with act.planning(person):
                made = act.do(person, _id(request), _document(act, values))
        except AlreadyDone:
            made = None
        except REFUSALS as error:
            return self._page(request, act, values, error=error)
        return RedirectResponse(made or _above(request), status_code=HTTPStatus.SEE_OTHER)

    def _page(
        self,
        request: Request,
        act: Act,
        values: Mapping[str, str],
        *,
        plan: ActPlan | None = None,
        error: Exception | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Response:
        context = dict(context or self._forms.context(request, act.role))
        if request.method == "GET" and request.url.query:
            context["here"] += f"?{request.url.query.replace('+', '%20')}"
        pins = {} if plan is None else {name: str(value) for name, value in plan.pins.items()}
        page = self._renderer.page(
            "act.html",
            status=HTTPStatus.OK if error is None else _status(error),
            title=act.title.format(id=_id(request)),
            act=act,
            values={**values, **pins},
            plan=plan,
            problem=f"{error}. Nothing was changed." if error is not None else None,
            path=request.url.path,
            above=_above(request),
            **context,
        )
        page.headers.update(FORM_HEADERS)
        return page


def _id(request: Request) -> str:
    """Return the id or name of the address, "" for one without. Raises BadId."""
    id = str(request.path_params.get("id", request.path_params.get("name", "")))
    if "id" in request.path_params:
        ids.read(id, request.url.path.split("/")[1])
    return id


def _above(request: Request) -> str:
    """The address of what the act is about: its own without the last part."""
    return request.url.path.rpartition("/")[0] or "/"


def _document(act: Act, values: Mapping[str, str]) -> Any:
    """Return the act's document. Raises RequestError."""
    try:
        document = {one.name: _typed(one, values[one.name]) for one in act.fields}
        return codec.typed(
            act.sent, {name: value for name, value in document.items() if value is not None}
        )
    except (codec.BadDocument, ValueError) as error:
        raise RequestError(f"{error}"[:300]) from None


def _typed(one: Field, text: str) -> object:
    """Return the value of a field in JSON; None if it is empty. Raises ValueError, RequestError."""
    if not (text := bounded(one.name, text, FIELD_CHARACTERS)):
        return None
    if one.kind == "list":
        return text.replace(",", " ").split()
    if one.kind == "flag":
        return text == "1"
    try:
        number = {"whole": int, "decimal": float}.get(one.kind)
        return text if number is None else number(text)
    except ValueError:
        raise ValueError(f"{one.name} must be a number, not {text[:40]!r}") from None


def _status(error: Exception) -> HTTPStatus:
    kinds = {
        NotFound: HTTPStatus.NOT_FOUND,
        NotYours: HTTPStatus.FORBIDDEN,
        OverQuota: HTTPStatus.TOO_MANY_REQUESTS,
        GitError: HTTPStatus.SERVICE_UNAVAILABLE,
    }
    return next(
        (status for kind, status in kinds.items() if isinstance(error, kind)),
        HTTPStatus.BAD_REQUEST,
    )
