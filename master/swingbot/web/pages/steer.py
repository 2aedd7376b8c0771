"""The log of a bisection, what it believes, and its steering: by who queued it, or a moderator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.bisect.tell import logbook
from swingbot.core.model import ids
from swingbot.core.table.request_document import SentHint, SentSkip
from swingbot.service.asked.dry_run import rehearsing
from swingbot.service.bisect import steer
from swingbot.service.bisect.explain import explanation
from swingbot.service.ports import Lab
from swingbot.service.ports.transaction import OpenTransaction
from swingbot.web.access.forms import Forms
from swingbot.web.http import json_body
from swingbot.web.http.fair_threads import FairThreads, in_turn
from swingbot.web.pages.acts import Act, ActPages, ActPlan, Field
from swingbot.web.pages.refused import REFUSALS, refused

Sent = TypeVar("Sent", SentSkip, SentHint)


_COMMITS: Final = Field(
    name="commits", label="Commits, or ranges A..B of them", kind="list", needed=True
)
_WHY: Final = Field(name="why", label="Why")


def routes(
    forms: Forms, lab: Callable[[], Lab], acts: ActPages, threads: FairThreads
) -> list[Route]:
    def log(people: bool) -> Callable[[Request], Response]:
        def show(request: Request) -> Response:
            book = steer.logbook(lab().transaction, _number(request))
            text = logbook.written(book, people=people)
            return PlainTextResponse(text, headers={"cache-control": "no-cache"})

        return show

    def opened(dry: bool) -> OpenTransaction:
        transaction = lab().transaction
        return rehearsing(transaction) if dry else transaction

    def explained(request: Request) -> Response:
        return JSONResponse(explanation(lab().transaction, _number(request)))

    def skip(number: int, sent: SentSkip, person: Person, *, dry: bool = False) -> list[str]:
        transaction, git = opened(dry), lab().tools.git
        return steer.skip(
            transaction, git, number, sent.commits, who=person, why=sent.why, undo=sent.undo
        )

    def hint(number: int, sent: SentHint, person: Person, *, dry: bool = False) -> list[str]:
        transaction, git = opened(dry), lab().tools.git
        return steer.hint(
            transaction, git, number, sent.commits, sent.factor, who=person, why=sent.why
        )

    return [
        Route("/bisection/{id}/log.txt", log(people=True), methods=["GET"]),
        Route("/bisection/{id}/log.jsonl", log(people=False), methods=["GET"]),
        Route("/bisection/{id}/explanation.json", explained, methods=["GET"]),
        *acts.routes(
            "/bisection/{id}/skip",
            _act(
                skip,
                title="Skip commits of {id}",
                about="These commits are not measured, from the next step on. They stay suspects,"
                " together with their neighbours.",
                button="Skip them",
                sent=SentSkip,
                fields=(_COMMITS, _WHY, Field(name="undo", kind="flag", pinned=True)),
            ),
            _steering(forms, SentSkip, skip),
            threads,
        ),
        *acts.routes(
            "/bisection/{id}/hint",
            _act(
                hint,
                title="Hint at commits of {id}",
                about="These commits count as more likely culprits, from the next step on. A"
                " correct hint of 10 saves about three boots, a wrong one costs as many; boots"
                " outweigh it.",
                button="Give the hint",
                sent=SentHint,
                fields=(
                    _COMMITS,
                    Field(
                        name="factor",
                        label="Times as likely (below 1: less likely; 1: no hint)",
                        default="10",
                        kind="decimal",
                    ),
                    _WHY,
                ),
            ),
            _steering(forms, SentHint, hint),
            threads,
        ),
    ]


def _act(steered: Callable[..., list[str]], **words: Any) -> Act:
    def plan(person: Person, id: str, sent: SentSkip | SentHint) -> ActPlan:
        commits = steered(ids.read(id)[1], sent, person, dry=True)
        undo = isinstance(sent, SentSkip) and sent.undo
        effect = (
            f"{sent.factor:g} times as likely"
            if isinstance(sent, SentHint)
            else "may be measured again"
            if undo
            else "will not be measured"
        )
        return ActPlan(lines=[*(f"`{commit[:12]}`: {effect}" for commit in commits), "no boots"])

    def do(person: Person, id: str, sent: SentSkip | SentHint) -> None:
        steered(ids.read(id)[1], sent, person)

    return Act(plan=plan, do=do, **words)


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
