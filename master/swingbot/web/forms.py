"""Pages that change something: who is signed in, and forms that no other site can send in that person's name.

Reading needs no login. To write, a person signs in once with a name and the operator's key (`swingbot key` prints it), and gets a cookie that scripts
cannot read and that other sites' forms do not carry (SameSite=Strict). Each form holds a token bound to that cookie; a form without it, or one that the
browser says comes from another site, is refused.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from .render import Renderer

COOKIE: Final = "swingbot"
HOURS: Final = 12  # a sign-in lasts so long
_LARGEST: Final = 64 << 10  # bytes of a form
_WHO: Final = re.compile(r"[^\W_](?:[\w .@+-]{0,62}\w)?")
_PATH: Final = re.compile(r"/[A-Za-z0-9/_.-]*(\?[A-Za-z0-9=&_.%-]*)?")
# The pages' own policy, but for forms to ourselves.
FORM_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; img-src 'self'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form that a signed-in person has sent: who, and the fields as text (the last of a name counts, line ends are LF)."""

    who: str
    values: Mapping[str, str]

    def text(self, name: str, longest: int = 2000) -> str:
        """One field without surrounding blanks. Raises HTTPException for one that is too long."""
        value = self.values.get(name, "").strip()
        if len(value) > longest:
            raise HTTPException(400, f"{name} has {len(value)} characters; {longest} are the most that is taken.")
        return value


def operator_key(secret: bytes) -> str:
    """What a person signs in with; changes only with the secret."""
    return _mac(secret, "operator key")[:32]


class Forms:
    """Sign-in and the tokens of forms. `secret` is the service's (`adapters.artifacts.secret`), `secure` says that pages are served by https."""

    def __init__(self, secret: bytes, renderer: Renderer, *, secure: bool = False, now: Callable[[], float] = time.time) -> None:
        self._secret, self._renderer, self._secure, self._now = secret, renderer, secure, now

    def who(self, request: Request) -> str | None:
        """The person who is signed in; None for everybody else."""
        found = self._session(request)
        return found[0] if found else None

    def field(self, request: Request) -> Markup:
        """The hidden field that each form needs: `{{ form_field }}` in a template."""
        return Markup('<input type="hidden" name="token" value="{}">').format(self._token(request))

    def context(self, request: Request) -> dict[str, Any]:
        """What the templates of pages with forms know: `who` (None: offer the sign-in), `form_field` and `here`, this page's path."""
        return {"who": self.who(request), "form_field": self.field(request), "here": request.url.path}

    async def read(self, request: Request) -> Form:
        """The form that was sent. Raises HTTPException: 403 for a stranger's or another site's, 413 for a large one."""
        found = self._session(request)
        values = await self._values(request)
        if found is None:
            raise HTTPException(403, "Sign in first at /login; nothing was changed.")
        if not hmac.compare_digest(values.get("token", "").encode(), self._token(request).encode()):
            raise HTTPException(403, "This form is not of this sign-in: load the page again, then send it again. Nothing was changed.")
        return Form(who=found[0], values=values)

    async def _values(self, request: Request) -> dict[str, str]:
        _same_site(request)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LARGEST:
                raise HTTPException(413, "The form is too large; nothing was changed.")
        try:
            pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
        except ValueError:
            raise HTTPException(400, "The form cannot be read; nothing was changed.") from None
        return {name: value.replace("\r\n", "\n").replace("\0", "") for name, value in pairs}

    def _token(self, request: Request) -> str:
        return _mac(self._secret, f"form {request.cookies.get(COOKIE, '')}")

    def _session(self, request: Request) -> tuple[str, float] | None:
        """(who, end in Unix time) of a cookie that is ours and not over."""
        name, _, rest = request.cookies.get(COOKIE, "").partition(".")
        end, _, rest = rest.partition(".")
        nonce, _, mac = rest.partition(".")
        if not end.isascii() or not end.isdigit() or len(end) > 12 or not hmac.compare_digest(mac.encode(), self._sign(name, end, nonce).encode()):
            return None
        return (_unpacked(name), float(end)) if self._now() < float(end) else None

    def _sign(self, name: str, end: str, nonce: str) -> str:
        return _mac(self._secret, f"session {name} {end} {nonce}")

    def _cookie(self, who: str) -> str:
        name, end, nonce = _packed(who), str(int(self._now()) + HOURS * 3600), secrets.token_hex(8)
        return ".".join((name, end, nonce, self._sign(name, end, nonce)))

    # The two pages of signing in and out.
    def ask(self, request: Request, problem: str = "") -> Response:
        page = self._renderer.page(
            "login.html", status=403 if problem else 200, who=self.who(request), form_field=self.field(request), next=_next(request), problem=problem
        )
        page.headers.update(FORM_HEADERS)
        return page

    async def sign_in(self, request: Request) -> Response:
        values = await self._values(request)
        who, key = " ".join(values.get("who", "").split()), values.get("key", "").strip()
        if not _WHO.fullmatch(who):
            return self.ask(request, "Give a name of letters, digits, blanks and . @ + -, 64 at most: it is kept beside what you decide.")
        if not hmac.compare_digest(key.encode(), operator_key(self._secret).encode()):
            return self.ask(request, "That is not the operator's key; `swingbot key` prints it.")
        answer = RedirectResponse(_path(values.get("next", "")), status_code=HTTPStatus.SEE_OTHER)
        answer.set_cookie(COOKIE, self._cookie(who), max_age=HOURS * 3600, path="/", httponly=True, samesite="strict", secure=self._secure)
        return answer

    async def sign_out(self, request: Request) -> Response:
        await self.read(request)
        answer = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
        answer.delete_cookie(COOKIE, path="/")
        return answer

    def routes(self) -> list[Route]:
        return [
            Route("/login", self.ask, methods=["GET"]),
            Route("/login", self.sign_in, methods=["POST"]),
            Route("/logout", self.sign_out, methods=["POST"]),
        ]


def _same_site(request: Request) -> None:
    """Refuse what a browser says another site has sent. Our pages send no referrer, so their own forms may say `Origin: null`."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = origin is not None and origin != "null" and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or site not in (None, "same-origin", "none"):
        raise HTTPException(403, "This form came from another site; nothing was changed.")


def _next(request: Request) -> str:
    return _path(request.query_params.get("next", ""))


def _path(given: str) -> str:
    """A path of ours to go to after signing in; anything else, such as another site, is the front page."""
    return given if _PATH.fullmatch(given) and not given.startswith("//") else "/"


def _packed(who: str) -> str:
    return base64.urlsafe_b64encode(who.encode()).decode().rstrip("=")


def _unpacked(name: str) -> str:
    return base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()


def _mac(secret: bytes, text: str) -> str:
    return hmac.new(secret, text.encode(), "sha256").hexdigest()
