"""The page of an incident, and the actions of signed-in people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from swingbot.adapters.artifacts import secret
from swingbot.app.settings import load
from swingbot.app.wiring import make_lab, sync_testboxes
from swingbot.web.access.forms import Forms
from swingbot.web.access.session import Sessions, operator_key
from swingbot.web.app import make_app
from swingbot.web.http.render import Renderer
from swingbot.web.http.snapshot_reader import SnapshotReader
from swingbot.web.pages.incident import IncidentPages
from swingbot_db import read
from swingbot_db.store import transactions
from tests import scenario
from tests.fakes.kernels import kept_by


@dataclass(kw_only=True)
class Site:
    client: TestClient
    conn: sa.Connection
    lab: scenario.Lab
    key: str
    made: list[int] = field(default_factory=list)

    def sign_in(self) -> None:
        token = self.token("/login")
        answer = self.client.post("/login", data={"key": self.key, "token": token})
        assert answer.status_code == 303

    def token(self, path: str) -> str:
        found = re.search(r'name="token" value="([^"]*)"', self.client.get(path).text)
        return found[1] if found else ""

    def decide(self, **fields: str) -> Any:
        path = f"/incident/i{self.lab.incident}"
        return self.client.post(path, data={"token": self.token(path), **fields})

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/incident/i{self.lab.incident}.json").json()
        return found


@pytest.fixture
def site(tmp_path: Path, db_url: str, engine: sa.Engine, conn: sa.Connection) -> Iterator[Site]:
    settings = load(
        environ={"SWINGBOT_PATHS_STATE": str(tmp_path / "state"), "SWINGBOT_DB_URL": db_url}
    )
    lab, renderer, key = (
        make_lab(settings, engine),
        Renderer(settings),
        secret(settings.secret_file),
    )
    sync_testboxes(lab)
    forms = Forms(key, renderer, Sessions(key, transactions(engine), pause=0.0))
    pages = IncidentPages(SnapshotReader(engine, read), renderer, forms, lambda: lab)
    app = make_app(
        settings,
        engine,
        read,
        kept_by(lambda sha256: (tmp_path / sha256).open("rb")),
        [*forms.routes(), *pages.routes()],
    )
    conn.execute(sa.text("DELETE FROM testbox"))
    with TestClient(app, follow_redirects=False) as client:
        yield Site(client=client, conn=conn, lab=scenario.a_lab(conn), key=operator_key(key))


def test_everybody_reads_an_incident_and_is_offered_no_form(site: Site) -> None:
    page = site.client.get(f"/incident/i{site.lab.incident}").text
    assert "Sign in" in page
    assert f'href="/bisection/b{site.lab.bisection}"' in page.partition("<h2>")[0]
    assert page.partition("<h2>")[0].count('href="#decide"') == 1, "without scrolling"
    assert 'method="post"' not in page
    assert scenario.SUBJECTS[scenario.CULPRIT] in page


def test_a_signed_in_person_decides_and_the_history_says_who(site: Site) -> None:
    site.sign_in()
    answer = site.decide(act="expected", reason="traded for latency")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"/incident/i{site.lab.incident}",
    )
    facts = site.facts()
    assert facts["status"] == "expected"
    assert [(event["act"], event["who"], event["reason"]) for event in facts["history"]] == [
        ("expected", "operator (pages)", "traded for latency")
    ]
    page = site.client.get(answer.headers["location"]).text
    assert "later tips are compared with the new level" in page and "operator (pages)" in page
    assert site.decide(act="reopen").status_code == 303
    assert site.facts()["status"] == "open"


def test_a_stranger_and_a_form_of_another_site_change_nothing(site: Site) -> None:
    path = f"/incident/i{site.lab.incident}"
    assert site.client.post(path, data={"act": "invalid"}).status_code == 401
    site.sign_in()
    assert site.client.post(path, data={"act": "invalid", "token": "0" * 64}).status_code == 403
    assert (
        site.client.post(
            path,
            data={"act": "invalid", "token": site.token(path)},
            headers={"origin": "https://evil.example"},
        ).status_code
        == 403
    )
    assert site.facts()["status"] == "open"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"act": "burn"}, "is not a valid action"),
        ({"act": "merge", "into": "c5"}, "an incident has an id such as i5"),
        ({"act": "merge", "into": "i999"}, "incident i999 does not exist"),
        ({"act": "merge", "into": "<script>"}, "is not an id"),
        ({"act": "split"}, "not merged into another incident"),
        ({"act": "fixed-by", "commit": "no such thing"}, "is not a commit"),
        ({"act": "fixed-by"}, "name the commit"),
        ({"act": "close", "reason": "x" * 600}, "600 characters"),
    ],
)
def test_what_cannot_be_done_is_answered_by_a_sentence_and_changes_nothing(
    site: Site, fields: dict[str, str], sentence: str
) -> None:
    site.sign_in()
    answer = site.decide(**fields)
    assert answer.status_code == 400
    assert sentence in answer.text and "Nothing was changed" in answer.text
    assert site.facts()["history"] == []


def test_what_people_and_commits_say_is_shown_as_text(site: Site) -> None:
    site.sign_in()
    site.decide(act="close", reason="<script>alert(1)</script>")
    page = site.client.get(f"/incident/i{site.lab.incident}")
    assert "<script>" not in page.text
    assert "form-action 'self'" in page.headers["content-security-policy"]
