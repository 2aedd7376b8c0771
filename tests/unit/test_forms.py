"""Forms on pages: only a person who is signed in changes something, and no other site can do it in that person's name."""

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

from swingbot.web.forms import COOKIE, HOURS, Forms, operator_key
from swingbot.web.render import Renderer

SECRET = b"s" * 32
START = 1_000_000.0


@dataclass
class Clock:
    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Settings:
    maildir: Path = Path("none")
    web_url: str = "http://testserver"
    buildbot_www_port: int = 8011


@dataclass(frozen=True)
class Site:
    client: TestClient
    clock: Clock
    changes: list[str]

    def token(self) -> str:
        found = re.search(r'name="token" value="([0-9a-f]+)"', self.client.get("/form").text)
        assert found
        return found[1]

    def sign_in(self, key: str = operator_key(SECRET), who: str = "Ada Example", next: str = "/form") -> httpx.Response:
        answer: httpx.Response = self.client.post("/login", data={"who": who, "key": key, "next": next}, follow_redirects=False)
        return answer


@pytest.fixture
def site() -> Site:
    clock, changes = Clock(), list[str]()
    forms = Forms(SECRET, Renderer(Settings()), now=clock)

    async def change(request: Request) -> Response:
        form = await forms.read(request)
        changes.append(f"{form.who}: {form.text('why')}")
        return PlainTextResponse("done")

    def page(request: Request) -> Response:
        return PlainTextResponse(str(forms.field(request)))

    app = Starlette(routes=[Route("/form", page), Route("/change", change, methods=["POST"]), *forms.routes()])
    return Site(TestClient(app), clock, changes)


def test_a_signed_in_person_changes_something_in_her_own_name(site: Site) -> None:
    answer = site.sign_in()
    assert (answer.status_code, answer.headers["location"]) == (303, "/form")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert site.client.post("/change", data={"token": site.token(), "why": "  reads well\r\nso "}).status_code == 200
    assert site.changes == ["Ada Example: reads well\nso"]


def test_nobody_else_changes_anything(site: Site) -> None:
    assert site.client.post("/change", data={"token": site.token(), "why": "x"}).status_code == 403
    site.sign_in()
    assert site.client.post("/change", data={"why": "no token"}).status_code == 403
    assert site.client.post("/change", data={"token": "0" * 64}).status_code == 403
    assert site.changes == []


@pytest.mark.parametrize("headers", [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.example.org"}])
def test_a_form_of_another_site_is_refused(site: Site, headers: dict[str, str]) -> None:
    site.sign_in()
    assert site.client.post("/change", data={"token": site.token()}, headers=headers).status_code == 403
    assert site.client.post("/login", data={"who": "a", "key": operator_key(SECRET)}, headers=headers).status_code == 403
    assert site.changes == []


def test_a_form_of_one_sign_in_is_no_form_of_another(site: Site) -> None:
    site.sign_in()
    token = site.token()
    site.sign_in(who="Bob")
    assert site.client.post("/change", data={"token": token}).status_code == 403


def test_a_sign_in_ends_by_itself_and_by_hand(site: Site) -> None:
    site.sign_in()
    token = site.token()
    site.clock.now += HOURS * 3600 + 1
    assert site.client.post("/change", data={"token": token}).status_code == 403
    site.sign_in()
    assert site.client.post("/logout", data={"token": site.token()}, follow_redirects=False).status_code == 303
    assert not site.client.cookies.get(COOKIE)


@pytest.mark.parametrize("who", ["", "<script>", "a" * 65, "Ada\nBcc: x", "-"])
def test_a_name_is_kept_beside_what_is_decided_so_it_must_be_one(site: Site, who: str) -> None:
    assert site.sign_in(who=who).status_code == 403


def test_a_wrong_key_says_where_the_right_one_is(site: Site) -> None:
    answer = site.client.post("/login", data={"who": "Ada", "key": "guess"})
    assert answer.status_code == 403 and "swingbot key" in answer.text


@pytest.mark.parametrize("cookie", ["", "a.b.c.d", "QWRh.99999999999.n.0", ".." * 50, "QWRh.9e9.n.x"])
def test_a_made_up_cookie_is_nobody(site: Site, cookie: str) -> None:
    site.client.cookies.set(COOKIE, cookie)
    assert site.client.post("/change", data={"token": site.token()}).status_code == 403


@pytest.mark.parametrize("next", ["//evil.example.org", "https://evil.example.org/", "javascript:x", "\\\\evil", "/a\r\nx: y"])
def test_signing_in_leads_to_no_other_site(site: Site, next: str) -> None:
    assert site.sign_in(next=next).headers["location"] == "/"


def test_a_form_that_is_too_large_or_no_form_is_refused(site: Site) -> None:
    site.sign_in()
    assert site.client.post("/change", content=b"x" * 70_000).status_code == 413
    assert site.client.post("/change", content=b"\xff\xfe").status_code == 400
    assert site.client.post("/change", content="&".join(f"a{n}=1" for n in range(99))).status_code == 400
    assert site.client.post("/change", data={"token": site.token(), "why": "y" * 3000}).status_code == 400
