"""Recipients of a report, foreseen or computed again, by moderators with a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role, on_web
from swingbot.core.model import ids
from swingbot.core.model.report_documents import Recipients
from swingbot.core.model.statuses import ReportState
from swingbot.web.access.forms import Forms
from swingbot.web.http.fair_threads import FairThreads, client_of
from swingbot.web.pages.refused import REFUSALS, answer_once, refused

Foresee = Callable[[str, str, str | None], Recipients]
Readdress = Callable[[int, str], ReportState]
_KEYS: Final = ("tree", "commit", "base")


def routes(
    forms: Forms, foresee: Foresee, readdress: Readdress, threads: FairThreads
) -> list[Route]:
    """`foresee` takes a tree, a commit and the commit whose MAINTAINERS counts (None: the tree's
    base); `readdress` the number of a report and who asks, and returns the report's state.

    Both raise NotFound, RequestError, and may run get_maintainer.pl for as long as that may take.
    """

    async def foreseen(request: Request) -> Response:
        await forms.token_holder(request, Role.MODERATOR)
        given = request.query_params
        if (unknown := given.keys() - set(_KEYS)) or not (
            given.get("tree") and given.get("commit")
        ):
            wrong = f"{min(unknown)[:40]!r} is not a parameter; " if unknown else ""
            raise HTTPException(400, f"{wrong}give `tree` and `commit`, and perhaps `base`")
        named = (given["tree"], given["commit"], given.get("base"))
        try:
            found = await threads.run(client_of(request), foresee, *named)
        except REFUSALS as error:
            return refused(error)
        return JSONResponse(found)

    async def readdressed(request: Request) -> Response:
        person = await forms.token_holder(request, Role.MODERATOR)
        id = request.path_params["id"]
        number = ids.read(id, "report")[1]

        def state(person: Person) -> dict[str, str]:
            return {"id": id, "state": readdress(number, on_web(person.who))}

        return await answer_once(forms, threads, request, person, state)

    return [
        Route("/recipients.json", foreseen, methods=["GET"]),
        Route("/report/{id}/readdress", readdressed, methods=["POST"]),
    ]
