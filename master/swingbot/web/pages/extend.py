"""Extend a table by boots: who asked for it, or a moderator, within their quota."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.model import ids
from swingbot.core.table.request_document import AskedExtension
from swingbot.service.table.extend import Extension, ExtensionRequest
from swingbot.service.table.plan_text import extension_lines
from swingbot.web.access.forms import Forms
from swingbot.web.http import json_body
from swingbot.web.http.fair_threads import FairThreads, client_of, in_turn
from swingbot.web.pages.acts import Act, ActPages, ActPlan, Field
from swingbot.web.pages.quota_left import Charging, with_quota
from swingbot.web.pages.refused import REFUSALS, refused


class Extender(Charging, Protocol):
    """Implemented by `swingbot.app.submitter.DatabaseSubmitter`.

    Raises RequestError for what cannot be extended, NotYours.
    """

    def planning(self, person: Person) -> AbstractContextManager[None]:
        """Count the time of the block for the person. Raises OverQuota."""
        ...

    def plan_extension(
        self, person: Person, request: ExtensionRequest
    ) -> tuple[Extension, str | None]:
        """Return the plan, and the reason if the quota would reject it."""
        ...

    def extend(self, person: Person, request: ExtensionRequest) -> Extension:
        """Queue the additional boots. Raises OverQuota."""
        ...


def routes(forms: Forms, extender: Extender, acts: ActPages, threads: FairThreads) -> list[Route]:
    async def answer(request: Request) -> Response:
        person = await forms.token_holder(request, Role.SUBMITTER)
        id = request.path_params["id"]
        ids.read(id, request.url.path.split("/")[1])
        asked = await in_turn(request, json_body.read, AskedExtension, await request.body())

        def make(person: Person) -> Awaitable[Response]:
            # one after the other: two must not both use the remaining quota
            client, who = client_of(request), person.who
            given = (extender, person, _answer, extender, person, id, asked)
            return threads.run(client, with_quota, *given, person=who)

        return await forms.once.answer(request, person, make)

    return [
        route
        for kind in ids.TABLES
        for route in acts.routes(f"/{kind}/{{id}}/extend", _act(extender), answer, threads)
    ]


def _act(extender: Extender) -> Act:
    def plan(person: Person, id: str, asked: AskedExtension) -> ActPlan:
        planned, refused = extender.plan_extension(person, _request(id, asked))
        return ActPlan(
            lines=extension_lines(id, planned),
            refused=refused,
            pins={"from_boots": planned.boots - asked.boots},
        )

    def do(person: Person, id: str, asked: AskedExtension) -> None:
        extender.extend(person, _request(id, asked))

    return Act(
        title="Add boots to {id}",
        about="The kernels are booted again, in turn, and the verdicts of the table computed anew.",
        button="Add them",
        sent=AskedExtension,
        fields=(
            Field(name="boots", label="Boots per kernel, in addition", default="1", kind="whole"),
            Field(name="from_boots", kind="whole", pinned=True),
        ),
        plan=plan,
        do=do,
        planning=extender.planning,
    )


def _request(id: str, asked: AskedExtension) -> ExtensionRequest:
    return ExtensionRequest(id=id, boots=asked.boots, from_boots=asked.from_boots)


def _answer(extender: Extender, person: Person, id: str, asked: AskedExtension) -> Response:
    request = _request(id, asked)
    document: dict[str, Any] = {"id": id}
    try:
        with extender.planning(person):
            if asked.dry_run:
                planned, document["refused"] = extender.plan_extension(person, request)
            else:
                planned = extender.extend(person, request)
    except REFUSALS as error:
        return refused(error)
    return JSONResponse(
        document | {"plan": planned.to_json(id), "lines": extension_lines(id, planned)}
    )
