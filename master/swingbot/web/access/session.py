"""Authentication: the token of a script, or the session of a person who signed in with one.

A session is 256 random bits in a cookie that scripts cannot read and that other sites' forms do
not send (SameSite=Strict). The database stores its digest, so that signing out, revoking the token
and expiry end it.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from swingbot.core.access import tokens
from swingbot.core.access.rates import Buckets, Rate
from swingbot.core.access.roles import Person
from swingbot.core.access.tokens import EndedToken
from swingbot.service.access import refuse_sign_in, sign_in, sign_out
from swingbot.service.ports.transaction import OpenTransaction, Transaction
from swingbot.service.visible import everything_visible

from ..http.fair_threads import client_of, in_turn

HOURS: Final = 12  # lifetime of a session
# Tokens cannot be guessed; this keeps attempts from filling the logs and the database.
FAILURES: Final = Rate(per_second=1 / 60, burst=5)
_SIGNED_IN: Final = "swingbot.signed_in"  # in the scope of a request
PAUSE_SECONDS: Final = 1.0  # delay of the response to a wrong token


def operator_key(secret: bytes) -> str:
    """The first operator's token; it changes only with the secret."""
    return hmac.new(secret, b"operator key", "sha256").hexdigest()[:32]


class Sessions:
    """`secret` is the service's (`adapters.artifacts.secret`); `secure`: pages use https."""

    def __init__(
        self,
        secret: bytes,
        begin: OpenTransaction,
        *,
        secure: bool = False,
        now: Callable[[], float] = time.monotonic,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self._key, self.begin, self._secure, self._now, self._pause = (
            operator_key(secret),
            _of_everything(begin),
            secure,
            now,
            pause,
        )
        self._failures = Buckets(FAILURES)
        # A browser accepts this cookie name only over https, for this host and all paths.
        self.cookie = "__Host-swingbot" if secure else "swingbot"

    def given(self, request: HTTPConnection) -> str:
        """Return the cookie that was sent; it may be anything."""
        return str(request.cookies.get(self.cookie, ""))

    def signed_in(self, request: HTTPConnection) -> Person | None:
        """The person of the session, by cookie only; looked up once in a request."""
        if _SIGNED_IN not in request.scope:
            request.scope[_SIGNED_IN] = self._session_holder(self.given(request))
        person: Person | None = request.scope[_SIGNED_IN]
        return person

    def _session_holder(self, text: str) -> Person | None:
        if len(text) != 43:
            return None
        with self.begin("session") as tx:
            return tx.access.session_holder(tokens.digest(text))

    async def person(self, request: HTTPConnection) -> Person | None:
        """Return the person making the request; None for an anonymous request.

        Raises HTTPException for a bearer token that is not valid: 401, or 429 after several.
        """
        bearer = bearer_of(request)
        if bearer is None:
            return await in_turn(request, self.signed_in, request)
        return await self._known(request, bearer)

    async def reader(self, request: HTTPConnection) -> Person | None:
        """Return whom a page that is open to everybody knows; None for an invalid token too."""
        bearer = bearer_of(request)
        if bearer is None:
            return await in_turn(request, self.signed_in, request) if self.given(request) else None
        return await in_turn(request, self._holder, bearer)

    async def _known(self, request: HTTPConnection, text: str) -> Person:
        # A valid token is never refused for the invalid ones of others at the same address.
        person = await in_turn(request, self._holder, text)
        if person is not None:
            return person
        if (ended := await in_turn(request, self._ended, text)) is not None:
            raise HTTPException(401, str(ended))
        client = client_of(request)
        wait = self._failures.take(client, self._now())
        if wait > 0:
            raise HTTPException(
                429,
                "Too many invalid tokens from your address; wait a minute.",
                headers={"retry-after": str(int(wait) + 1)},
            )
        await in_turn(request, self._note, "sign-in refused", refuse_sign_in, client)
        await asyncio.sleep(self._pause)
        raise HTTPException(401, "This token is invalid; ask the operator for another one.")

    def _holder(self, text: str) -> Person | None:
        token = tokens.looks_like_one(text)
        if not token and not hmac.compare_digest(text.encode(), self._key.encode()):
            return None
        with self.begin("token") as tx:
            return tx.access.holder(tokens.digest(text) if token else None)

    def _ended(self, text: str) -> EndedToken | None:
        """Nobody guesses 256 bits: whoever has them may learn how the token ended."""
        if not tokens.looks_like_one(text):
            return None
        with self.begin("ended token") as tx:
            return tx.access.ended(tokens.digest(text))

    def _note(self, name: str, act: Callable[..., None], *facts: object) -> None:
        with self.begin(name) as tx:
            act(tx.access, *facts)

    async def sign_in(self, request: HTTPConnection, token: str, answer: Response) -> Person:
        """Start a session and set its cookie. Raises HTTPException for an invalid token."""
        person = await self._known(request, token)
        session = secrets.token_urlsafe(32)
        seconds = HOURS * 3600
        facts = (person, tokens.digest(session), seconds, client_of(request))
        await in_turn(request, self._note, "sign in", sign_in, *facts)
        answer.set_cookie(
            self.cookie,
            session,
            max_age=seconds,
            path="/",
            httponly=True,
            samesite="strict",
            secure=self._secure,
        )
        return person

    async def sign_out(self, request: HTTPConnection, answer: Response) -> None:
        session = tokens.digest(self.given(request))
        await in_turn(request, self._note, "sign out", sign_out, session)
        answer.delete_cookie(
            self.cookie, path="/", httponly=True, samesite="strict", secure=self._secure
        )


def _of_everything(begin: OpenTransaction) -> OpenTransaction:
    """Read sessions and tokens without the limits of the token itself."""

    @contextmanager
    def begun(name: str) -> Iterator[Transaction]:
        with everything_visible(), begin(name) as tx:
            yield tx

    return begun


def bearer_of(request: HTTPConnection) -> str | None:
    """Return the bearer token of the request; None if it has no such header."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None
