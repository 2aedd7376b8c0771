"""Cancel a table or bisection: who asked for it, or a moderator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.model import ids
from swingbot.web.access.forms import Forms
from swingbot.web.http.fair_threads import FairThreads
from swingbot.web.pages.acts import Act, ActPages, ActPlan, Field
from swingbot.web.pages.refused import answer_once
from swingbot_jobs.codec import Sparse

Cancel = Callable[[str, Person, int | None], str]


def routes(
    forms: Forms,
    extent: Callable[[str], int],
    cancel: Cancel,
    acts: ActPages,
    threads: FairThreads,
) -> list[Route]:
    """`extent` returns a number of what has this id that changes when it is resumed or extended,
    `cancel` cancels it, if it still has this number (None: any), and returns its status before.

    Both raise NotFound and RequestError, `cancel` NotYours.
    """

    def plan(person: Person, id: str, sent: _Cancellation) -> ActPlan:
        costs = "it costs nothing; a bisection can be resumed later, the same table requested again"
        return ActPlan(lines=[costs], pins={"extent": extent(id)})

    def do(person: Person, id: str, sent: _Cancellation) -> None:
        cancel(id, person, sent.extent)

    act = Act(
        title="Cancel {id}",
        about="What was measured is kept. Builds and boots that nothing else needs are cancelled in"
        " the next round.",
        button="Cancel it",
        sent=_Cancellation,
        fields=(Field(name="extent", kind="whole", pinned=True),),
        plan=plan,
        do=do,
    )

    async def answer(request: Request) -> Response:
        person = await forms.token_holder(request, Role.SUBMITTER)
        id = request.path_params["id"]
        ids.read(id, request.url.path.split("/")[1])

        def cancelled(person: Person) -> dict[str, str]:
            return {"id": id, "was": cancel(id, person, None)}

        return await answer_once(forms, threads, request, person, cancelled)

    return [
        route
        for kind in ids.REQUESTS
        for route in acts.routes(f"/{kind}/{{id}}/cancel", act, answer, threads)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cancellation:
    """Of something that had this extent when this was decided."""

    extent: Sparse[int | None] = None
