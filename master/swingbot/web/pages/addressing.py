"""Recipients of a report computed again, by who decides about reports, with a token."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.model import ids
from swingbot.core.model.statuses import ReportState
from swingbot.web.access.forms import Forms
from swingbot.web.http.fair_threads import FairThreads, client_of
from swingbot.web.pages.refused import REFUSALS, refused

Readdress = Callable[[int, str], ReportState]


def routes(forms: Forms, readdress: Readdress, threads: FairThreads) -> list[Route]:
    """`readdress` takes the number of a report and who asks, and returns the report's state.

    Raises NotFound, RequestError. It may run get_maintainer.pl for as long as that may take.
    """

    async def readdressed(request: Request) -> Response:
        person = await forms.token_holder(request, Role.MODERATOR)
        id = request.path_params["id"]
        number = ids.read(id, "report")[1]

        async def make(person: Person) -> Response:
            who = f"{person.who} (web)"
            try:
                state = await threads.run(client_of(request), readdress, number, who)
            except REFUSALS as error:
                return refused(error)
            return JSONResponse({"id": id, "state": state})

        return await forms.once.answer(request, person, make)

    return [Route("/report/{id}/readdress", readdressed, methods=["POST"])]
