"""Answers to scripts: what a request did, or why it was refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from swingbot.core.access.roles import Person
from swingbot.core.model.lookup import NotFound
from swingbot.service.access import CarriedOut
from swingbot.service.asked.asker import NotYours
from swingbot.service.ports import GitError, RequestError

from ..access.forms import Forms
from ..http.error_response import problem
from ..http.fair_threads import FairThreads, client_of


class OverQuota(Exception):
    """The person's quota is used up; the message says how and until when."""


REFUSALS: Final = (NotFound, RequestError, GitError, NotYours, OverQuota, CarriedOut)


def refused(error: Exception) -> JSONResponse:
    """Return the answer to a request that raised one of REFUSALS."""
    status = HTTPStatus.BAD_REQUEST
    if isinstance(error, NotFound):
        status = HTTPStatus.NOT_FOUND
    elif isinstance(error, NotYours):
        status = HTTPStatus.FORBIDDEN
    elif isinstance(error, OverQuota):
        status = HTTPStatus.TOO_MANY_REQUESTS
    elif isinstance(error, CarriedOut):
        status = HTTPStatus.CONFLICT
    return problem(status, str(error))


async def answer_once(
    forms: Forms,
    threads: FairThreads,
    request: Request,
    person: Person,
    act: Callable[[Person], Mapping[str, Any]],
) -> Response:
    """Run `act` when it is the client's turn, and answer with its document or why it refuses.

    With an Idempotency-Key it runs once; `act` gets the person with that key.
    """

    async def make(person: Person) -> Response:
        try:
            return JSONResponse(await threads.run(client_of(request), act, person))
        except REFUSALS as error:
            return refused(error)

    return await forms.once.answer(request, person, make)
