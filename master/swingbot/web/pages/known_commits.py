"""Which commits of a checkout the service has: in a tree, or sent by the person who asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role
from swingbot.core.table.request_document import AskedCommits
from swingbot.service.ports import GitError, RequestError
from swingbot.web.access.forms import Forms
from swingbot.web.http import json_body
from swingbot.web.http.fair_threads import FairThreads, client_of, in_turn
from swingbot.web.pages.refused import refused

Known = Callable[[Person, Sequence[str], str | None], set[str]]


def routes(forms: Forms, known: Known, threads: FairThreads) -> list[Route]:
    """`known` returns those of the commits that the service has for a person, or that the branch of
    a tree has. Raises RequestError, GitError.
    """

    async def answer(request: Request) -> Response:
        person = await forms.token_holder(request, Role.SUBMITTER)
        asked = await in_turn(request, json_body.read, AskedCommits, await request.body())
        client = client_of(request)
        try:
            found = await threads.run(client, known, person, asked.commits, asked.tree)
        except (RequestError, GitError) as error:
            return refused(error)
        return JSONResponse({"known": [commit for commit in asked.commits if commit in found]})

    return [Route("/commits/known", answer, methods=["POST"])]
