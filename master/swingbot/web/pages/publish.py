"""Publish a private table: who asked for it, or a moderator who may read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.model import ids
from swingbot.web.access.forms import Forms
from swingbot.web.http.fair_threads import FairThreads, client_of
from swingbot.web.pages.acts import Act, ActPages, ActPlan
from swingbot.web.pages.refused import REFUSALS, refused


@dataclass(frozen=True, slots=True, kw_only=True)
class _Publication:
    """A form without fields."""


def routes(
    forms: Forms,
    readers: Callable[[str], Sequence[str]],
    publish: Callable[[str, Person], None],
    acts: ActPages,
    threads: FairThreads,
) -> list[Route]:
    """`readers` returns who may read the table with an id, `publish` lets everybody read it.

    Both raise NotFound and RequestError, `publish` NotYours.
    """

    def plan(person: Person, id: str, sent: _Publication) -> ActPlan:
        names = ", ".join(readers(id)) or "nobody"
        return ActPlan(lines=[f"until now {names} may read it, beside operators"])

    def do(person: Person, id: str, sent: _Publication) -> None:
        publish(id, person)

    act = Act(
        title="Publish {id}",
        about="Everybody who may read these pages then sees the table, its kernels with commits and"
        " subjects, their builds and boots. This cannot be taken back.",
        button="Publish it",
        sent=_Publication,
        fields=(),
        plan=plan,
        do=do,
    )

    async def answer(request: Request) -> Response:
        person = await forms.token_holder(request, Role.SUBMITTER)
        id = request.path_params["id"]
        ids.read(id, request.url.path.split("/")[1])

        async def make(person: Person) -> Response:
            try:
                await threads.run(client_of(request), publish, id, person)
            except REFUSALS as error:
                return refused(error)
            return JSONResponse({"id": id})

        return await forms.once.answer(request, person, make)

    return [
        route
        for kind in ids.TABLES
        for route in acts.routes(f"/{kind}/{{id}}/publish", act, answer, threads)
    ]
