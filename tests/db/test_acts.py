"""Acts as forms, with real rows: cost first, each form sent twice, a wrong role, another site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import unescape
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from swingbot.core.access.roles import Role
from tests.asking import Serve, Site

HTML = {"accept": "text/html"}


@dataclass(kw_only=True)
class Browser:
    """What a person without scripts does: follow links, and send the forms of pages."""

    site: Site
    client: httpx.Client
    token: dict[str, str] = field(default_factory=dict)  # headers of a script of the same person

    def page(self, address: str, status: int = 200) -> str:
        answer = self.client.get(address)
        assert answer.status_code == status, answer.text
        return unescape(answer.text)

    def sign_in(self, **fields: str) -> httpx.Response:
        key = self.token["Authorization"].split()[1]
        return self.client.post("/login", data={"key": key} | fields)

    def form(self, address: str) -> dict[str, str]:
        """The fields of the form that makes the change."""
        text = self.client.get(address).text
        found = re.search(r'<form method="post" action="([^"]*)" class="row">(.*?)</form>', text)
        found = found or re.search(
            r'(?s)<form method="post" action="([^"]*)".*?>(.*?)</form>', text
        )
        assert found, text
        fields = re.findall(r'name="([^"]*)" value="([^"]*)"', found[2])
        return {name: unescape(value) for name, value in fields}

    def send(self, address: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        return self.client.post(address.partition("?")[0], data=fields, headers=headers)

    def twice(self, address: str) -> str:
        """Send the form of the page at `address` twice; return where both lead."""
        fields = self.form(address)
        answers = [self.send(address, fields) for _ in range(2)]
        assert [one.status_code for one in answers] == [303, 303], answers[1].text
        goals = {one.headers["location"] for one in answers}
        assert len(goals) == 1
        return goals.pop()

    def count(self, query: str, **names: Any) -> Any:
        found = self.site.web.conn.execute(sa.text(f"SELECT {query}"), names).scalar_one()
        self.site.web.conn.rollback()
        return found


@dataclass(kw_only=True)
class Place:
    site: Site
    stack: ExitStack

    def person(self, who: str, role: Role) -> Browser:
        browser = self.stranger()
        browser.token = self.site.web.token(who, role)
        assert browser.sign_in().headers["location"] == "/"
        return browser

    def stranger(self) -> Browser:
        base = f"http://127.0.0.1:{self.site.web.port}"
        client = self.stack.enter_context(httpx.Client(base_url=base, headers=HTML, timeout=60))
        return Browser(site=self.site, client=client)


@pytest.fixture
def place(serve: Serve) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(site=serve(SWINGBOT_WEB_WRITE_RATE="0"), stack=stack)


@pytest.fixture
def ada(place: Place) -> Browser:
    """She asked for table c1."""
    browser = place.person("Ada", Role.SUBMITTER)
    assert place.site.json(browser.token, boots=2).json()["id"] == "c1"
    return browser


def test_boots_are_added_once_and_the_page_says_what_they_cost(ada: Browser) -> None:
    page = ada.page("/comparison/c1/extend?boots=3")
    assert "c1 will have 5 boots of each of its 2 rows" in page
    assert "vm-icount: 6 boots, at most" in page
    assert ada.count("boots FROM comparison") == 2, "looking changes nothing"
    assert ada.twice("/comparison/c1/extend?boots=3") == "/comparison/c1"
    assert ada.count("boots FROM comparison") == 5
    charges = ada.count("count(*) FROM access_event WHERE act = 'compare'")
    assert charges == 2, "the request and one extension"


def test_a_page_that_is_older_than_the_table_adds_nothing(place: Place, ada: Browser) -> None:
    old = ada.form("/comparison/c1/extend?boots=4")
    fia = place.person("Fia", Role.MODERATOR)
    assert fia.twice("/comparison/c1/extend?boots=1") == "/comparison/c1"
    refused = ada.send("/comparison/c1/extend", old)
    assert refused.status_code == 400 and "c1 has 3 boots per row by now, not 2" in refused.text
    assert ada.count("boots FROM comparison") == 3


def test_a_table_is_cancelled(ada: Browser) -> None:
    assert 'href="/comparison/c1/cancel"' in ada.page("/comparison/c1")
    old = ada.form("/comparison/c1/cancel")
    assert ada.twice("/comparison/c1/cancel") == "/comparison/c1"
    assert ada.count("status || ': ' || reason FROM comparison") == "cancelled: cancelled by Ada"
    assert "c1 has ended (cancelled): there is nothing" in ada.page("/comparison/c1/cancel", 400)
    assert ada.twice("/comparison/c1/extend?boots=1") == "/comparison/c1"
    assert ada.count("status FROM comparison") == "waiting"
    refused = ada.send("/comparison/c1/cancel", old)
    assert refused.status_code == 400 and "c1 was extended meanwhile" in refused.text
    assert ada.count("status FROM comparison") == "waiting"


@pytest.fixture
def searching(ada: Browser) -> Browser:
    """Her bisection b1 runs."""
    page = ada.page(SEARCH)
    assert "2 commits of tree fake" in page and "kernels: about" in page
    assert ada.count("count(*) FROM bisection") == 0
    assert ada.twice(SEARCH) == "/bisection/b1"
    assert ada.count("count(*) FROM bisection") == 1
    return ada


def test_a_bisection_is_asked_for_by_its_two_ends(searching: Browser) -> None:
    good, bad = searching.site.commits[0], searching.site.commits[2]
    chosen = SEARCH.replace("range=base..tip", f"good={good}&bad={bad}")
    assert searching.twice(chosen) == "/bisection/b1", "the same search, named by its commits"


def test_commits_are_skipped_and_hinted_at(searching: Browser) -> None:
    middle = searching.site.commits[1]
    skip = f"/bisection/b1/skip?commits={middle[:12]}&why=hangs"
    assert f"{middle[:12]}: will not be measured" in re.sub("</?code>", "", searching.page(skip))
    assert searching.count("count(*) FROM bisection_steer") == 0
    assert searching.twice(skip) == "/bisection/b1"
    assert searching.count("count(*) FROM bisection_steer") == 1
    assert "skipped by Ada: hangs" in searching.page("/bisection/b1")
    hint = f"/bisection/b1/hint?commits={middle}&factor=5"
    assert searching.twice(hint) == "/bisection/b1"
    assert searching.count("factor FROM bisection_steer WHERE act = 'hint'") == 5
    fields = searching.form(skip.replace("&why=hangs", "&undo=1"))
    for _ in range(2):
        assert searching.send("/bisection/b1/skip", fields).headers["location"] == "/bisection/b1"
    assert searching.count("count(*) FROM bisection_steer WHERE act = 'unskip'") == 1


def test_a_cancelled_bisection_is_resumed_once(searching: Browser) -> None:
    cancel = searching.form("/bisection/b1/cancel")
    assert searching.twice("/bisection/b1/cancel") == "/bisection/b1"
    assert "b1 has ended (cancelled)" in searching.page("/bisection/b1/cancel", 400)
    assert 'href="/bisection/b1/resume"' in searching.page("/bisection/b1")
    resume = "/bisection/b1/resume?boots=7"
    assert "up to 7 more boots" in searching.page(resume)
    old = searching.form(resume)
    assert searching.twice(resume) == "/bisection/b1"
    assert searching.count("status FROM bisection") == "running"
    assert searching.count("count(*) FROM bisection_steer WHERE act = 'resume'") == 1
    assert searching.send("/bisection/b1/resume", old).status_code == 303
    refused = searching.send("/bisection/b1/cancel", cancel)
    assert refused.status_code == 400 and "b1 was resumed meanwhile" in refused.text
    assert searching.count("status FROM bisection") == "running"
    assert searching.twice("/bisection/b1/cancel") == "/bisection/b1"


SEARCH = "/bisect?tree=fake&range=base..tip&metric=hackbench.throughput&testbox=vm-icount"
ACTS = ("/comparison/c1/extend?boots=1", "/comparison/c1/cancel")


@pytest.mark.parametrize("act", ACTS)
def test_without_the_role_an_act_is_refused_and_changes_nothing(
    place: Place, ada: Browser, act: str
) -> None:
    fields = ada.form(act)
    stranger = place.stranger()
    assert "/login?next=" in stranger.page(act) and "boots, at most" not in stranger.page(act)
    assert stranger.send(act, fields).status_code == 401
    bob, reader = place.person("Bob", Role.SUBMITTER), place.person("Rhea", Role.READER)
    assert "requires the role submitter" in reader.page(act)
    assert reader.send(act, fields).status_code == 403
    own = re.search(r'name="token" value="([^"]*)"', bob.client.get("/compare").text)
    assert own
    assert bob.send(act, fields).status_code == 403, "a form of another session"
    refused = bob.send(act, fields | {"token": own[1]})
    assert refused.status_code == 403 and "is not yours" in refused.text
    for header in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        foreign = ada.client.post(act.partition("?")[0], data=fields, headers=header)
        assert foreign.status_code == 403 and "another site" in foreign.text
    assert ada.count("boots FROM comparison") == 2
    assert ada.count("status FROM comparison") == "waiting"


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/comparison/c9/extend?boots=1", 404, "comparison c9 does not exist"),
        ("/comparison/c1/extend?boots=0", 400, "boots"),
        ("/comparison/c1/extend?boots=many", 400, "boots must be a number, not 'many'"),
        ("/comparison/c1/extend?boots=1000", 400, "at most"),
        ("/comparison/b1/cancel", 400, "b1"),
    ],
)
def test_bad_input_gets_one_sentence(ada: Browser, address: str, status: int, words: str) -> None:
    assert words in ada.page(address, status)


def test_a_testbox_returns_to_service_once(place: Place) -> None:
    conn, url = place.site.web.conn, "/testbox/vm-icount/resume"
    fia, ben = place.person("Fia", Role.OPERATOR), place.person("Ben", Role.MODERATOR)
    assert "vm-icount is in service: there is nothing to return" in fia.page(url, 400)
    out = sa.text("UPDATE testbox SET state = 'quarantined', reason = :r WHERE name = 'vm-icount'")
    conn.execute(out, {"r": "no answer, " + "three times; " * 60})
    conn.commit()
    assert f'href="{url}"' in fia.page("/testbox/vm-icount")
    old = fia.form(url)
    assert "requires the role operator" in ben.page(url)
    assert ben.send(url, old).status_code == 403
    assert fia.twice(url) == "/testbox/vm-icount"
    assert fia.count("state FROM testbox WHERE name = 'vm-icount'") == "active"
    conn.execute(out, {"r": "smoke"})
    conn.commit()
    refused = fia.send(url, old)
    assert refused.status_code == 400 and "is quarantined: smoke by now" in refused.text
    assert fia.count("state FROM testbox WHERE name = 'vm-icount'") == "quarantined"
    for was in ("quarantined", "active"):
        answer = fia.client.post(url, json={}, headers=fia.token)
        assert answer.json() == {"testbox": "vm-icount", "was": was}


def test_a_field_that_is_too_long_comes_back_with_the_rest_of_the_form(ada: Browser) -> None:
    fields = ada.form("/comparison/c1/extend?boots=1") | {"boots": "2" * 301}
    refused = ada.send("/comparison/c1/extend", fields)
    assert refused.status_code == 400
    assert "boots has 301 characters; the limit is 300. Nothing was changed." in refused.text
    assert f'name="boots" value="{fields["boots"]}"' in refused.text
    assert "the limit is 300" in ada.page(f"/comparison/c1/extend?boots={'3' * 301}", 400)
    assert ada.count("boots FROM comparison") == 2


def test_every_page_says_who_is_signed_in(place: Place, ada: Browser) -> None:
    for address in ("/", "/comparison/c1", "/trees", "/nonsense"):
        own = ada.client.get(address).text
        assert re.search(r'class="reader"[^>]*>Ada <span class="n">submitter<', own), address
        assert "no-cache" in ada.client.get(address).headers["cache-control"]
    stranger = place.stranger().client.get("/orders?state=done&kind=boot").text
    assert "/login?next=%2Forders%3Fstate%3Ddone%26kind%3Dboot" in stranger


def test_a_script_posts_json_to_the_same_address_however_it_calls_it(ada: Browser) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    for headers in (ada.token, ada.token | kind):
        answer = ada.client.post(
            "/comparison/c1/extend", content='{"boots": 1, "from_boots": 2}', headers=headers
        )
        assert answer.status_code == (200 if headers is ada.token else 400), answer.text
        assert answer.headers["content-type"].startswith("application/")
    assert ada.count("boots FROM comparison") == 3


def test_signing_in_leads_back_to_the_act(place: Place, ada: Browser) -> None:
    stranger = place.stranger()
    found = re.search(r'href="(/login\?next=[^"]*)"', stranger.page(ACTS[0]).split("<h1>")[1])
    assert found
    given = re.search(r'name="next" value="([^"]*)"', stranger.client.get(found[1]).text)
    assert given
    stranger.token = ada.token
    assert stranger.sign_in(next=unescape(given[1])).headers["location"] == ACTS[0]
