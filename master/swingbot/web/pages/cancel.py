"""Cancel a table or bisection: who asked for it, or a moderator."""

from __future__ import annotations

from collections.abc import Callable
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

Cancel = Callable[[str, Person], str]


def routes(forms: Forms, cancel: Cancel, acts: ActPages, threads: FairThreads) -> list[Route]:
    """`cancel` cancels what has this id, and returns its status before.

    Raises NotFound, NotYours.
    """

    def do(person: Person, id: str, sent: _Nothing) -> None:
        cancel(id, person)

    act = Act(
        title="Cancel {id}",
        about="What was measured is kept. Builds and boots that nothing else needs are cancelled in"
        " the next round.",
        button="Cancel it",
        sent=_Nothing,
        fields=(),
        plan=lambda person, id, sent: ActPlan(
            lines=[
                "it costs nothing; a bisection can be resumed later, the same table requested again"
            ]
        ),
        do=do,
    )

    async def answer(request: Request) -> Response:
        person = await forms.token_holder(request, Role.SUBMITTER)
        id = request.path_params["id"]
        ids.read(id, request.url.path.split("/")[1])

        async def make(person: Person) -> Response:
            try:
                was = await threads.run(client_of(request), cancel, id, person)
            except REFUSALS as error:
                return refused(error)
            return JSONResponse({"id": id, "was": was})

        return await forms.once.answer(request, person, make)

    return [
        route
        for kind in ids.REQUESTS
        for route in acts.routes(f"/{kind}/{{id}}/cancel", act, answer, threads)
    ]


@dataclass(frozen=True, slots=True)
class _Nothing:
    """A document without fields."""
