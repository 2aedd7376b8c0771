"""Pages that make changes: the role they require, and protection against cross-site requests.

A person signs in with a token (`web/access/session.py`). Each form has its own token, bound to that
session. A form without it, or one that the browser attributes to another site, is refused.
A script sends its token as `Authorization: Bearer` and needs no form token, because no browser
adds that header by itself.
"""

from __future__ import annotations

import hmac
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from swingbot.core.access.rates import UNLIMITED, Buckets, Rate
from swingbot.core.access.roles import PURPOSES, Person, Role, group_refusal, may, refusal
from swingbot.service.ports import RequestError

from .. import limits
from ..http.fair_threads import in_turn
from ..http.render import Renderer
from .once import AnswersOnce
from .session import Sessions, bearer_of

NO_TOKEN: Final = "This needs a token: send `Authorization: Bearer <token>`."
# RFC 3986, without the parts that name a host
_PATH: Final = re.compile(r"/[A-Za-z0-9/_.~%!$&'()*+,;=:@-]*(\?[A-Za-z0-9/?_.~%!$&'()*+,;=:@-]*)?")
# The policy of the other pages, but without scripts.
FORM_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; img-src 'self'; style-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form sent by a signed-in person, and its fields as text.

    The last value of a repeated field counts; line ends are LF.
    """

    person: Person
    values: Mapping[str, str]

    @property
    def who(self) -> str:
        return self.person.who

    def text(self, name: str, longest: int = 2000) -> str:
        """Return one field, stripped. Raises RequestError for one that is too long."""
        return bounded(name, self.values.get(name, ""), longest)


def bounded(name: str, value: str, longest: int) -> str:
    """Return `value` stripped. Raises RequestError for more than `longest` characters."""
    if len(value := value.strip()) > longest:
        raise RequestError(f"{name} has {len(value)} characters; the limit is {longest}")
    return value


class Forms:
    """Forms and their requirements. `secret` is the service's (`adapters.artifacts.secret`)."""

    def __init__(
        self,
        secret: bytes,
        renderer: Renderer,
        sessions: Sessions,
        rate: Rate = UNLIMITED,
        now: Callable[[], float] = time.monotonic,
        by_group: Callable[[Person, str, str], bool] = lambda person, method, path: False,
        quota_left: Callable[[Person], Mapping[str, str]] = lambda person: {},
    ) -> None:
        """`rate` limits how often one token may write. `by_group` is that of `ReadAccess`,
        `quota_left` returns header fields.
        """
        self._secret, self._renderer, self._sessions, self._now = secret, renderer, sessions, now
        self._by_group, self._quota_left = by_group, quota_left
        self._writes = Buckets(rate)
        self.once = AnswersOnce(sessions.begin)

    def field(self, request: Request) -> Markup:
        """The hidden field that each form needs: `{{ form_field }}` in a template."""
        return Markup('<input type="hidden" name="token" value="{}">').format(self._token(request))

    def context(self, request: Request, needs: Role = Role.MODERATOR) -> dict[str, Any]:
        """Template variables of pages with forms.

        `person` is signed in, `who` is that person if the role suffices (None: the page says what
        is required), the role that `needs` names, `form_field`, and `here`, the path of this page.
        """
        person = self._sessions.signed_in(request)
        who = person.who if person is not None and may(person.role, needs) else None
        return {
            "person": person,
            "who": who,
            "needs": needs,
            "form_field": self.field(request),
            "here": request.url.path,
        }

    async def person(self, request: Request, needs: Role) -> Person:
        """Return the person who makes the change.

        Raises HTTPException: 401 without a valid token or session, 403 without the required
        role, 429 for a token that writes too often.
        """
        person = await self._sessions.person(request)
        refused = refusal(person, needs)
        if refused is not None:
            raise HTTPException(401 if person is None else 403, refused)
        assert person is not None
        if person.groups is not None and not self._by_group(
            person, request.method, request.url.path
        ):
            raise HTTPException(403, group_refusal(person))
        wait = self._writes.take(str(person.token), self._now())
        if wait > 0:
            raise HTTPException(
                429,
                f"The token of {person.who} was used too often; wait a moment. Nothing was"
                " changed.",
                headers={"retry-after": str(math.ceil(wait))},
            )
        return person

    async def token_holder(self, request: Request, needs: Role) -> Person:
        """Return the person of a script that makes a change without a form.

        Raises HTTPException as `person` does, and 401 without a token.
        """
        if bearer_of(request) is None:
            raise HTTPException(401, NO_TOKEN)
        return await self.person(request, needs)

    async def still(self, request: Request) -> None:
        """Check the token again after a long body. Raises HTTPException 401."""
        await self._sessions.person(request)

    async def visitor(self, request: Request) -> Person | None:
        """Return who reads; None for an anonymous request. Raises HTTPException 401, 429."""
        return await self._sessions.person(request)

    async def read(self, request: Request, needs: Role = Role.MODERATOR) -> Form:
        """Return the submitted form.

        Raises HTTPException as `person` does, 403 for a form from another site, 413 for one that is
        too large.
        """
        person = await self.person(request, needs)
        values = await self._values(request)
        self.check(request, values)
        return Form(person=person, values=values)

    def check(self, request: Request, values: Mapping[str, str]) -> None:
        """Refuse a form that does not belong to this session. Raises HTTPException."""
        if bearer_of(request) is None and not hmac.compare_digest(
            values.get("token", "").encode(), self._token(request).encode()
        ):
            raise HTTPException(
                403,
                "This form belongs to an earlier session. Reload the page, then submit it again."
                " Nothing was changed.",
            )

    async def _values(self, request: Request) -> dict[str, str]:
        same_site(request)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > limits.FORM_BYTES:
                raise HTTPException(413, "The form is too large; nothing was changed.")
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50
            )
        except ValueError:
            raise HTTPException(400, "The form is malformed; nothing was changed.") from None
        return {name: value.replace("\r\n", "\n").replace("\0", "") for name, value in pairs}

    def _token(self, request: Request) -> str:
        return hmac.new(
            self._secret, f"form {self._sessions.given(request)}".encode(), "sha256"
        ).hexdigest()

    # The pages for signing in and out.
    def ask(
        self,
        request: Request,
        problem: str = "",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        more: dict[str, Any] = {
            "next": _next(request),
            "problem": problem,
            "person": self._sessions.signed_in(request),
            "form_field": self.field(request),
        }
        page = self._renderer.page("login.html", status=status, roles=PURPOSES, **more)
        page.headers.update({**FORM_HEADERS, **(headers or {})})
        return page

    async def who(self, request: Request) -> Response:
        """Whose token or session this is, with what is left of the person's quota; nulls for an
        anonymous reader. Raises HTTPException.
        """
        person = await self._sessions.person(request)
        left = await in_turn(request, self._quota_left, person) if person else {}
        return JSONResponse(
            {
                "who": person and person.who,
                "role": person and person.role,
                "groups": person and person.groups,
                "levels": person and person.levels,
            },
            headers={"cache-control": "no-store", **left},
        )

    async def sign_in(self, request: Request) -> Response:
        values = await self._values(request)
        answer = RedirectResponse(_path(values.get("next", "")), status_code=HTTPStatus.SEE_OTHER)
        try:
            await self._sessions.sign_in(request, values.get("key", "").strip(), answer)
        except HTTPException as error:
            words = (error.detail, error.status_code, error.headers)
            return await in_turn(request, self.ask, request, *words)
        return answer

    async def sign_out(self, request: Request) -> Response:
        await self.read(request, needs=Role.READER)
        answer = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
        await self._sessions.sign_out(request, answer)
        return answer

    def routes(self) -> list[Route]:
        return [
            Route("/login", self.ask, methods=["GET"]),
            Route("/login.json", self.who, methods=["GET"]),
            Route("/login", self.sign_in, methods=["POST"]),
            Route("/logout", self.sign_out, methods=["POST"]),
        ]


def same_site(request: Request) -> None:
    """Refuse requests that the browser attributes to another site.

    The pages send no referrer, so their own forms may have `Origin: null`.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = (
        origin is not None
        and origin != "null"
        and urlsplit(origin).netloc != request.headers.get("host")
    )
    if foreign or site not in (None, "same-origin", "none"):
        raise HTTPException(403, "This form came from another site; nothing was changed.")


def _next(request: Request) -> str:
    return _path(request.query_params.get("next", ""))


def _path(target: str) -> str:
    """Return the local path to go to after signing in; `/` for any other target."""
    return target if _PATH.fullmatch(target) and not target.startswith("//") else "/"
