"""Forms on pages: only a person whose role allows it changes something, and no other site can do
it in that person's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from swingbot.core.access.rates import UNLIMITED, Rate
from swingbot.core.access.roles import Role
from swingbot.core.access.tokens import digest
from swingbot.service.access import revoke_token
from swingbot.service.ports import RequestError
from swingbot.service.ports.access import NewToken
from swingbot.web.access.forms import Forms
from swingbot.web.access.session import FAILURES, HOURS, Sessions, operator_key
from swingbot.web.app import SafeHeaders
from swingbot.web.http.render import Renderer
from tests.fakes.store import MemoryStore

SECRET = b"s" * 32
START = 1_000_000.0
ADA, BOB, EVE = ("swingbot_" + letter * 43 for letter in "abe")


@dataclass
class Clock:
    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Settings:
    maildir: Path = Path("none")
    web_url: str = "http://testserver"
    buildbot_url: str = "http://testserver:8011/"


@dataclass(frozen=True)
class Site:
    client: TestClient
    clock: Clock
    store: MemoryStore
    sessions: Sessions
    changes: list[str]

    def token(self) -> str:
        found = re.search(r'name="token" value="([0-9a-f]+)"', self.client.get("/form").text)
        assert found
        return found[1]

    def sign_in(self, key: str = ADA, next: str = "/form") -> httpx.Response:
        answer: httpx.Response = self.client.post(
            "/login", data={"key": key, "next": next}, follow_redirects=False
        )
        return answer

    def change(self, **fields: str) -> int:
        return int(self.client.post("/change", data=fields).status_code)


def a_site(*, secure: bool = False, rate: Rate = UNLIMITED) -> Site:
    clock, changes = Clock(), list[str]()
    store = MemoryStore()
    for token, who, role in (
        (ADA, "Ada Example", Role.MODERATOR),
        (BOB, "Bob", Role.MODERATOR),
        (EVE, "Eve", Role.SUBMITTER),
    ):
        with store.transaction() as tx:
            tx.access.add_token(NewToken(who=who, role=role, digest=digest(token), by="test"))
    sessions = Sessions(SECRET, store.transaction, secure=secure, now=clock, pause=0.0)
    forms = Forms(SECRET, Renderer(Settings()), sessions, rate, clock)

    async def change(request: Request) -> Response:
        form = await forms.read(request)
        changes.append(f"{form.who}: {form.text('why')}")
        return PlainTextResponse("done")

    def page(request: Request) -> Response:
        return PlainTextResponse(str(forms.field(request)))

    app = Starlette(
        routes=[Route("/form", page), Route("/change", change, methods=["POST"]), *forms.routes()]
    )
    return Site(
        TestClient(
            SafeHeaders(app), base_url="https://testserver" if secure else "http://testserver"
        ),
        clock,
        store,
        sessions,
        changes,
    )


@pytest.fixture
def site() -> Site:
    return a_site()


def test_a_signed_in_person_changes_something_in_the_name_of_the_token(site: Site) -> None:
    answer = site.sign_in()
    assert (answer.status_code, answer.headers["location"]) == (303, "/form")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "secure" not in cookie
    assert site.change(token=site.token(), who="Somebody Else", why="  reads well\r\nso ") == 200
    assert site.changes == ["Ada Example: reads well\nso"]


def test_behind_https_the_cookie_never_goes_over_http_nor_to_another_host() -> None:
    site = a_site(secure=True)
    cookie = site.sign_in().headers["set-cookie"]
    assert (
        cookie.startswith("__Host-")
        and "secure" in cookie.lower()
        and "domain" not in cookie.lower()
    )
    assert site.change(token=site.token(), why="x") == 200


def test_neither_cookie_nor_page_holds_the_token(site: Site) -> None:
    answer = site.sign_in()
    assert ADA not in answer.headers["set-cookie"] + site.client.get("/login").text
    assert ADA not in str(site.store.db)


def test_nobody_else_changes_anything(site: Site) -> None:
    assert site.change(token=site.token(), why="x") == 401
    site.sign_in()
    assert site.change(why="no token") == 403
    assert site.change(token="0" * 64) == 403
    assert site.changes == []


def test_who_lacks_the_role_gets_the_role_that_is_needed(site: Site) -> None:
    site.sign_in(EVE)
    answer = site.client.post("/change", data={"token": site.token(), "why": "x"})
    assert answer.status_code == 403 and site.changes == []
    assert "needs the role moderator, and Eve's token has the role submitter" in answer.text


def test_the_operators_key_is_the_first_operators_token(site: Site) -> None:
    assert site.sign_in(operator_key(SECRET)).status_code == 303
    assert site.change(token=site.token(), why="x") == 200
    assert site.changes == ["operator: x"]


def test_a_script_sends_its_token_and_needs_no_form(site: Site) -> None:
    def sent(token: str) -> int:
        return int(
            site.client.post(
                "/change", data={"why": "nightly"}, headers={"authorization": f"Bearer {token}"}
            ).status_code
        )

    assert sent(BOB) == 200
    assert sent(EVE) == 403
    assert sent("swingbot_" + "x" * 43) == 401
    assert site.changes == ["Bob: nightly"]


def test_a_wrong_bearer_is_nobody_even_where_a_session_stands_beside_it(site: Site) -> None:
    site.sign_in()
    answer = site.client.post(
        "/change", data={"token": site.token()}, headers={"authorization": "Bearer nonsense"}
    )
    assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert site.changes == []


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example.org"},
    ],
)
def test_a_form_of_another_site_is_refused(site: Site, headers: dict[str, str]) -> None:
    site.sign_in()
    assert (
        site.client.post("/change", data={"token": site.token()}, headers=headers).status_code
        == 403
    )
    assert site.client.post("/login", data={"key": ADA}, headers=headers).status_code == 403
    assert site.changes == []


def test_a_form_of_one_sign_in_is_no_form_of_another(site: Site) -> None:
    site.sign_in()
    token = site.token()
    site.sign_in(BOB)
    assert site.change(token=token) == 403


def test_a_sign_in_ends_by_itself_by_hand_and_with_its_token(site: Site) -> None:
    site.sign_in()
    token = site.token()
    site.clock.now += HOURS * 3600 + 1
    site.store.pass_time(HOURS * 3600 + 1)
    assert site.change(token=token) == 401
    site.sign_in()
    cookie, token = site.client.cookies[site.sessions.cookie], site.token()
    assert (
        site.client.post("/logout", data={"token": token}, follow_redirects=False).status_code
        == 303
    )
    assert not site.client.cookies.get(site.sessions.cookie)
    site.client.cookies.set(site.sessions.cookie, cookie)
    assert site.change(token=token) == 401, (
        "a cookie that was copied is worth nothing after signing out"
    )
    site.sign_in()
    with site.store.transaction() as tx:
        revoke_token(tx.access, 2, by="test")
    assert site.change(token=site.token()) == 401


def test_wrong_tokens_are_counted_and_slowed_down_for_their_client_alone(site: Site) -> None:
    for _ in range(int(FAILURES.burst)):
        assert site.sign_in("guess").status_code == 401
    answer = site.sign_in("guess")
    assert answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= 61
    assert len(site.store.db.access_events) == FAILURES.burst
    site.clock.now += 61
    assert site.sign_in().status_code == 303


def test_a_token_that_writes_too_often_waits_whatever_address_it_comes_from() -> None:
    site = a_site(rate=Rate(per_second=0.1, burst=2))

    def sent(token: str) -> httpx.Response:
        answer: httpx.Response = site.client.post(
            "/change", data={"why": "x"}, headers={"authorization": f"Bearer {token}"}
        )
        return answer

    assert [sent(token).status_code for token in (ADA, ADA, ADA, BOB)] == [200, 200, 429, 200]
    assert sent(ADA).headers["retry-after"] == "10"
    site.clock.now += 10
    assert sent(ADA).status_code == 200


def test_a_wrong_token_says_whom_to_ask(site: Site) -> None:
    answer = site.client.post("/login", data={"key": "guess"})
    assert (
        answer.status_code == 401
        and "ask the operator" in answer.text
        and "guess" not in answer.text
    )


@pytest.mark.parametrize("cookie", ["", "a.b.c.d", "x" * 43, ".." * 50, "QWRh.9e9.n.x", "\x7f"])
def test_a_made_up_cookie_is_nobody(site: Site, cookie: str) -> None:
    site.client.cookies.set(site.sessions.cookie, cookie)
    assert site.change(token=site.token()) == 401


@pytest.mark.parametrize(
    "next",
    [
        "/compare?tree=mm&head=v6.1,v6.2&with=a+b&range=a..b",
        "/metric/mm/vm-icount/vm-a:b/x%2Fy.z@1",
    ],
)
def test_signing_in_leads_back_to_where_it_began(site: Site, next: str) -> None:
    assert site.sign_in(next=next).headers["location"] == next


@pytest.mark.parametrize(
    "next",
    [
        "//evil.example.org",
        "//a@b",
        '/a"b',
        "https://evil.example.org/",
        "javascript:x",
        "\\\\evil",
        "/a\r\nx: y",
    ],
)
def test_signing_in_leads_to_no_other_site(site: Site, next: str) -> None:
    assert site.sign_in(next=next).headers["location"] == "/"


def test_a_form_that_is_too_large_or_no_form_is_refused(site: Site) -> None:
    site.sign_in()
    assert site.client.post("/change", content=b"x" * 70_000).status_code == 413
    assert site.client.post("/change", content=b"\xff\xfe").status_code == 400
    assert (
        site.client.post("/change", content="&".join(f"a{n}=1" for n in range(99))).status_code
        == 400
    )
    with pytest.raises(RequestError, match="why has 3000 characters; the limit is 2000"):
        site.client.post("/change", data={"token": site.token(), "why": "y" * 3000})
