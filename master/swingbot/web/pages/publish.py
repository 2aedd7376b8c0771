"""Publish a private table: who asked for it, or a moderator who may read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.model import ids
from swingbot.web.access.forms import Forms
from swingbot.web.http.fair_threads import FairThreads
from swingbot.web.pages.acts import Act, ActPages, ActPlan
from swingbot.web.pages.refused import answer_once


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
        names = ", ".join([*readers(id), "operators"])
        return ActPlan(lines=[f"only these may read it now: {names}"])

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

        def published(person: Person) -> dict[str, str]:
            publish(id, person)
            return {"id": id}

        return await answer_once(forms, threads, request, person, published)

    return [
        route
        for kind in ids.TABLES
        for route in acts.routes(f"/{kind}/{{id}}/publish", act, answer, threads)
    ]
