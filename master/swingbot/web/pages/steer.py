"""The log of a bisection, what it believes, and its steering: by who queued it, or a moderator,
with a token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.bisect.tell import logbook
from swingbot.core.model import ids
from swingbot.core.table.request_document import SentHint, SentSkip
from swingbot.service.bisect import steer
from swingbot.service.bisect.explain import explanation
from swingbot.service.ports import Lab
from swingbot.web.access.forms import Forms
from swingbot.web.http import json_body
from swingbot.web.http.fair_threads import in_turn
from swingbot.web.pages.refused import REFUSALS, refused

Sent = TypeVar("Sent", SentSkip, SentHint)


def routes(forms: Forms, lab: Callable[[], Lab]) -> list[Route]:
    def log(people: bool) -> Callable[[Request], Response]:
        def show(request: Request) -> Response:
            book = steer.logbook(lab().transaction, _number(request))
            text = logbook.written(book, people=people)
            return PlainTextResponse(text, headers={"cache-control": "no-cache"})

        return show

    def explained(request: Request) -> Response:
        return JSONResponse(explanation(lab().transaction, _number(request)))

    def skip(number: int, sent: SentSkip, person: Person) -> list[str]:
        transaction, git = lab().transaction, lab().tools.git
        return steer.skip(
            transaction, git, number, sent.commits, who=person, why=sent.why, undo=sent.undo
        )

    def hint(number: int, sent: SentHint, person: Person) -> list[str]:
        transaction, git = lab().transaction, lab().tools.git
        return steer.hint(
            transaction, git, number, sent.commits, sent.factor, who=person, why=sent.why
        )

    return [
        Route("/bisection/{id}/log.txt", log(people=True), methods=["GET"]),
        Route("/bisection/{id}/log.jsonl", log(people=False), methods=["GET"]),
        Route("/bisection/{id}/explanation.json", explained, methods=["GET"]),
        Route("/bisection/{id}/skip", _steering(forms, SentSkip, skip), methods=["POST"]),
        Route("/bisection/{id}/hint", _steering(forms, SentHint, hint), methods=["POST"]),
    ]


def _steering(
    forms: Forms, kind: type[Sent], steered: Callable[[int, Sent, Person], list[str]]
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that reads `kind` and answers with the commits that are `steered`."""

    async def answer(request: Request) -> Response:
        person = await forms.token_holder(request, Role.SUBMITTER)
        number = _number(request)
        sent = await in_turn(request, json_body.read, kind, await request.body())

        async def make(person: Person) -> Response:
            try:
                commits = await in_turn(request, steered, number, sent, person)
            except REFUSALS as error:
                return refused(error)
            return JSONResponse({"id": ids.show("bisection", number), "commits": commits})

        return await forms.once.answer(request, person, make)

    return answer


def _number(request: Request) -> int:
    return ids.read(request.path_params["id"], "bisection")[1]
