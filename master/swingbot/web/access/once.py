"""Requests that are carried out once, however often they are sent: the header `Idempotency-Key`
(draft-ietf-httpapi-idempotency-key-header).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from swingbot.core.access.roles import Person, RequestKey
from swingbot.service.access import keep_answer
from swingbot.service.limits import KEPT_ANSWER_BYTES
from swingbot.service.ports.access import KeptAnswer
from swingbot.service.ports.transaction import OpenTransaction

from ..http.fair_threads import in_turn

HEADER: Final = "idempotency-key"
KEY: Final = r'^("[!#-\[\]-~]{1,100}"|[A-Za-z0-9._:~+/=-]{1,100})$'
_KEY: Final = re.compile(KEY)


class AnswersOnce:
    """Answers to requests with a key, by token, for a day.

    Kept are answers to what was carried out; a refused request may be sent again.
    """

    def __init__(self, begin: OpenTransaction) -> None:
        self._begin = begin
        self._busy: set[tuple[int, str]] = set()

    async def answer(
        self, request: Request, person: Person, make: Callable[[Person], Awaitable[Response]]
    ) -> Response:
        """Return what `make` answers, or what it answered to the same request with this key.

        `make` gets the person with the key, which use cases record with what they carry out.
        Raises HTTPException: 400 for a malformed key, 409 while the request is in progress, 422
        for a key of another request.
        """
        if HEADER not in request.headers:
            return await make(person)
        once = RequestKey(key=_key(request), digest=_digest(request, await request.body()))
        mine = person.token, once.key
        if mine in self._busy:
            raise HTTPException(
                409,
                "A request with this Idempotency-Key is in progress; send it again in a moment.",
                headers={"retry-after": "1"},
            )
        self._busy.add(mine)
        try:
            if (kept := await in_turn(request, self._kept, person.token, once)) is not None:
                return kept
            answer = await make(replace(person, once=once))
            if answer.status_code < HTTPStatus.MULTIPLE_CHOICES:
                await in_turn(request, self._keep, person.token, once, answer)
            return answer
        finally:
            self._busy.discard(mine)

    def _kept(self, token: int, once: RequestKey) -> Response | None:
        with self._begin("kept answer") as tx:
            known = tx.access.kept_answer(token, once.key)
        if known is None:
            return None
        digest, answer = known
        if digest != once.digest:
            raise HTTPException(
                422,
                f"The Idempotency-Key {once.key} belongs to another request of yours; use a key for"
                " each request. Nothing was changed.",
            )
        if answer is None:
            return None
        headers = {} if answer.location is None else {"location": answer.location}
        return Response(answer.body, answer.status, headers, media_type="application/json")

    def _keep(self, token: int, once: RequestKey, answer: Response) -> None:
        body = bytes(answer.body)
        if len(body) > KEPT_ANSWER_BYTES:
            return
        kept = KeptAnswer(
            status=answer.status_code, location=answer.headers.get("location"), body=body.decode()
        )
        with self._begin("keep answer") as tx:
            keep_answer(tx.access, token, once, kept)


def _key(request: Request) -> str:
    text = request.headers[HEADER].strip()
    if not _KEY.fullmatch(text):
        raise HTTPException(
            400,
            "Idempotency-Key must have 1 to 100 letters, digits or ._:~+/=-, such as a UUID, in"
            " double quotes or without.",
        )
    return text.strip('"')


def _digest(request: Request, body: bytes) -> str:
    """Return what tells requests of a person apart."""
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode())
    digest.update(body)
    return digest.hexdigest()
