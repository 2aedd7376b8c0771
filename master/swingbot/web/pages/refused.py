"""What a script is told whose request is refused."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.responses import JSONResponse

from swingbot.core.model.lookup import NotFound
from swingbot.service.access import CarriedOut
from swingbot.service.asked.asker import NotYours
from swingbot.service.ports import GitError, RequestError

from ..http.error_response import problem


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
