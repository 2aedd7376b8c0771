"""What a script is told whose request is refused."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.responses import JSONResponse

from swingbot.core.model.lookup import NotFound
from swingbot.service.asked.asker import NotYours
from swingbot.service.ports import GitError, RequestError


class OverQuota(Exception):
    """The person's quota is used up; the message says how and until when."""


REFUSALS: Final = (NotFound, RequestError, GitError, NotYours, OverQuota)


def refused(error: Exception) -> JSONResponse:
    """Return the answer to a request that raised one of REFUSALS."""
    status = HTTPStatus.BAD_REQUEST
    if isinstance(error, NotFound):
        status = HTTPStatus.NOT_FOUND
    elif isinstance(error, NotYours):
        status = HTTPStatus.FORBIDDEN
    elif isinstance(error, OverQuota):
        status = HTTPStatus.TOO_MANY_REQUESTS
    return JSONResponse({"error": str(error)}, status)
