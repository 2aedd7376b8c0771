"""Gates of an incident run again, or what they would cost, by who has a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.access.roles import Person, Role, on_web, refusal
from swingbot.core.model import ids
from swingbot.core.proof.proof_request import ProofRequest
from swingbot.web.access.forms import Forms
from swingbot.web.http import json_body
from swingbot.web.http.fair_threads import FairThreads, in_turn
from swingbot.web.pages.refused import answer_once

Foresee = Callable[[int, Sequence[str]], Sequence[Any]]
Prove = Callable[[int, Sequence[str], str], bool]


def routes(forms: Forms, foresee: Foresee, prove: Prove, threads: FairThreads) -> list[Route]:
    """`foresee` returns the costs (dataclasses) of the gates of an incident by its number; `prove`
    runs them for the person named last, and says whether the incident is measured against its
    parent first.

    Both raise RequestError, and read the git repository. What runs gates spends boots regardless of
    any budget, so it needs an operator; costs need a moderator.
    """

    async def proved(request: Request) -> Response:
        person = await forms.token_holder(request, Role.MODERATOR)
        id = request.path_params["id"]
        number = ids.read(id, "incident")[1]
        asked = await in_turn(request, json_body.read, ProofRequest, await request.body())
        if not asked.dry_run and (why := refusal(person, Role.OPERATOR)):
            raise HTTPException(403, why)

        def answer(person: Person) -> dict[str, Any]:
            if asked.dry_run:
                return {"id": id, "costs": [asdict(one) for one in foresee(number, asked.gates)]}
            parent_first = prove(number, asked.gates, on_web(person.who))
            return {"id": id, "measures_parent_first": parent_first}

        return await answer_once(forms, threads, request, person, answer)

    return [Route("/incident/{id}/prove", proved, methods=["POST"])]
