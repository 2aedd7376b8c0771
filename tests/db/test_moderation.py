"""Moderation: what people decided is shown, and pages decide."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.testclient import TestClient

from swingbot.app.mail import mail_rules
from swingbot.app.settings import MailSection
from swingbot.core.mail.encoding import Envelope, encode, message_id
from swingbot.core.mail.message import Mail as Letter
from swingbot.core.model.statuses import FirstState, ReportAct
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.moderation.ruling import ReportClass
from swingbot.service.ports.outbox import OutboxMail
from swingbot.service.ports.reports import NewReport
from swingbot.service.report.decide import decide, switch_mail
from swingbot.web.access.session import operator_key
from swingbot.web.app import make_app
from swingbot_db import read
from swingbot_db.store import PgTransaction
from tests import builders as make
from tests.fakes.kernels import kept_by
from tests.fakes.pages import SECRET, writing_routes

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KIND = ReportClass(metric=make.METRIC, testbox="vm-icount", gates=("code", "reproduced"))
LIST = "linux-mm@lists.example.org"


@dataclass
class Office:
    """Reports of different commits of one tree."""

    conn: sa.Connection
    engine: sa.Engine
    made: int = 0

    @property
    def tx(self) -> PgTransaction:
        return PgTransaction(self.conn)

    def decide(self, number: int, act: ReportAct, why: str = "") -> None:
        decide(self.tx.outbox, number, act, NOW, who="ada", why=why)

    def report(
        self,
        state: FirstState = "held",
        *,
        to: tuple[str, ...] = ("dev@example.org",),
        cc: tuple[str, ...] = (),
        **more: Any,
    ) -> int:
        """A stored first mail about a commit of its own, due at NOW."""
        self.made += 1
        tree = self.conn.execute(sa.text("SELECT id FROM tree")).scalar_one()
        incident = make.an_incident(self.conn, tree, make.a_kernel(self.conn, tree, self.made))
        found = Addressed(
            to=to,
            cc=cc,
            would_to=("author@example.org",),
            lists=tuple(a for a in cc if "lists" in a),
            left_out=(("x@y.org", "wants none"),),
            commit_only=("author@example.org",),
        )
        filing = Filing(
            state="held", reason="for the test", addressed=found, kind=more.pop("kind", KIND)
        )
        number = self.tx.reports.reserve()
        identity = message_id(f"i{incident}", "first", 1, "example.org")
        letter = Letter(
            subject=f"mm: commit {self.made} is slower <b>", body="Hello,\n\nplease look.\n"
        )
        message = encode(
            letter, Envelope(sender="bot@example.org", to=to, cc=cc, message_id=identity, date=NOW)
        )
        return self.tx.reports.add(
            NewReport(
                number=number,
                incident=incident,
                kind="first",
                revision=1,
                message_id=identity,
                to=to,
                cc=cc,
                subject=letter.subject,
                body=letter.body,
                message=message,
                state=state,
                filing=filing,
            )
        )

    def facts(self, number: int) -> OutboxMail:
        mail = self.tx.outbox.lock(number)
        assert mail is not None
        return mail


@pytest.fixture
def office(conn: sa.Connection, engine: sa.Engine) -> Office:
    make.a_tree(conn)
    make.a_testbox(conn)
    return Office(conn, engine)


def test_what_people_decided_is_shown_of_its_class_and_of_each_report(office: Office) -> None:
    numbers = [office.report() for _ in range(4)]
    for number in numbers[:3]:
        office.decide(number, "release", "fine")
    office.decide(numbers[3], "drop", "noise")
    office.report(kind=replace(KIND, gates=("reproduced",)))
    assert [
        (c["gates"], c["reports"], c["released"], c["dropped"], c["earned"])
        for c in read.report_classes(office.conn)
    ] == [
        (["code", "reproduced"], 4, 3, 1, False),
        (["reproduced"], 1, 0, 0, False),
    ]
    office.decide(numbers[0], "hold", "asking first")
    assert [
        (act["act"], act["who"], act["why"], act["was"])
        for act in read.report(office.conn, f"r{numbers[0]}")["acts"]
    ] == [
        ("release", "ada", "fine", "held"),
        ("hold", "ada", "asking first", "queued"),
    ]


def test_the_status_says_that_mail_is_stopped(office: Office) -> None:
    switch_mail(office.tx.outbox, True, who="ada", why="wrong facts")
    assert any(
        "mail is stopped by ada: wrong facts" in problem["text"]
        for problem in read.status(office.conn)["problems"]
    )


def test_a_digest_without_a_week_is_refused(office: Office) -> None:
    a_digest(office)
    with pytest.raises(sa.exc.IntegrityError):
        office.conn.execute(sa.text("UPDATE report SET week = NULL WHERE kind = 'digest'"))


def test_improvements_without_a_mail_of_their_own_are_reported_in_their_week(
    office: Office,
) -> None:
    conn, tree = office.conn, office.conn.execute(sa.text("SELECT id FROM tree")).scalar_one()
    testbox = make.Testbox(name="vm-icount", spec=make.a_spec(conn, make.UNIT_JOB))
    comparison = make.a_comparison(
        conn,
        tree,
        make.a_kernel(conn, tree, 90),
        make.a_kernel(conn, tree, 91),
        [testbox],
        kind="watch",
        status="done",
        ended_at=NOW,
    )
    make.a_row(conn, comparison, testbox)
    make.a_swing(
        conn, comparison, testbox, change_pct=9.0, direction="better", state="not_bisected"
    )
    day = timedelta(days=1)
    (found,) = office.tx.reports.improvements_between(NOW - day, NOW + day)
    assert (found.metric, found.change_pct, found.page, found.commit) == (
        make.METRIC,
        9.0,
        f"/comparison/c{comparison}",
        "",
    )
    assert office.tx.reports.improvements_between(NOW + timedelta(seconds=1), NOW + day) == []


@dataclass(frozen=True)
class PageSettings:
    maildir: Path
    web_url: str = "http://testserver"
    buildbot_url: str = "http://127.0.0.1:8011/"


@pytest.fixture
def client(office: Office, tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(
        Starlette(routes=writing_routes(PageSettings(maildir=tmp_path), office.engine)),
        follow_redirects=False,
    ) as client:
        yield client


def sign_in(client: TestClient) -> str:
    client.post("/login", data={"key": operator_key(SECRET)})
    found = re.search(r'name="token" value="([0-9a-f]+)"', client.get("/moderation").text)
    assert found
    return found[1]


def test_the_queue_shows_the_exact_mail_and_to_whom_it_would_be_sent(
    office: Office, client: TestClient
) -> None:
    number = office.report()
    page = client.get("/moderation").text
    for words in (
        "please look.",
        "author@example.org",
        "x@y.org",
        "named by the commit alone",
        "for the test",
        "Dry run",
        "Message-ID: &lt;",
        f"r{number}",
        "&lt;b&gt;",
    ):
        assert words in page, words
    assert "<b>" not in page and "Release" not in page, "who is not signed in decides nothing"
    (held,) = client.get("/moderation.json").json()["held"]
    assert held["commit_only"] == ["author@example.org"]
    assert (held["id"], held["would_to"], held["dry_run"], held["mail"].count("Message-ID")) == (
        f"r{number}",
        ["author@example.org"],
        True,
        1,
    )


def test_a_signed_in_person_releases_and_drops_and_is_remembered(
    office: Office, client: TestClient
) -> None:
    first, second = office.report(), office.report()
    token = sign_in(client)
    assert (
        client.post(f"/moderation/r{first}", data={"token": token, "act": "release"}).status_code
        == 303
    )
    refused = client.post(
        f"/moderation/r{second}", data={"token": token, "act": "drop", "why": " "}
    )
    assert (
        refused.status_code == 409
        and "Give a reason" in refused.text
        and office.facts(second).state == "held"
    )
    assert (
        client.post(
            f"/moderation/r{second}", data={"token": token, "act": "drop", "why": "noise"}
        ).status_code
        == 303
    )
    assert (office.facts(first).state, office.facts(second).state) == ("queued", "dropped")
    again = client.post(f"/moderation/r{second}", data={"token": token, "act": "release"})
    assert again.status_code == 409 and "it was dropped" in again.text
    assert "drop by operator (web): noise" in " ".join(client.get("/outbox").text.split())
    assert client.post("/moderation/b5", data={"token": token, "act": "release"}).status_code == 409
    assert (
        client.post(f"/moderation/r{first}", data={"token": token, "act": "send"}).status_code
        == 400
    )


def test_nobody_else_decides(office: Office, client: TestClient) -> None:
    number = office.report()
    assert client.post(f"/moderation/r{number}", data={"act": "release"}).status_code == 401
    assert client.post("/moderation/switch", data={"act": "stop"}).status_code == 401
    token = sign_in(client)
    assert (
        client.post(
            f"/moderation/r{number}",
            data={"act": "release", "token": token},
            headers={"sec-fetch-site": "cross-site"},
        ).status_code
        == 403
    )
    assert office.facts(number).state == "held"


def test_mail_is_stopped_and_resumed_from_the_outbox(office: Office, client: TestClient) -> None:
    token = sign_in(client)
    assert (
        client.post(
            "/moderation/switch", data={"token": token, "act": "stop", "why": "wrong"}
        ).status_code
        == 303
    )
    assert (
        "Mail has been stopped" in client.get("/outbox").text
        and client.get("/outbox.json").json()["switch"]["who"] == "operator (web)"
    )
    client.post("/moderation/switch", data={"token": token, "act": "resume"})
    assert not read.switch(office.conn)["stopped"]


def test_settings_become_rules() -> None:
    policy = mail_rules(
        MailSection(
            opt_outs=" a@b.org, @c.org ",
            private_trees="dev-*",
            digest_to="x@y.org",
            per_list=3,
            per_recipient=4,
            to="Ops <ops@example.org>",
            stop=True,
        )
    )
    assert policy.rules.opt_outs == policy.leaving.opt_outs == ("a@b.org", "@c.org")
    assert (
        policy.private_trees,
        policy.digest_to,
        policy.leaving.per_list,
        policy.leaving.stop,
        policy.dry_run,
    ) == (("dev-*",), ("x@y.org",), 3, True, True)
    assert policy.leaving.per_recipient == 4
    assert policy.leaving.operator == ("ops@example.org", "x@y.org")


def a_digest(office: Office) -> int:
    number = office.tx.reports.reserve()
    return office.tx.reports.add(
        NewReport(
            number=number,
            incident=None,
            kind="digest",
            revision=1,
            message_id=message_id("2026-W47", "digest", 1, "example.org"),
            to=["a@b.org"],
            subject="2 improvements",
            body="b",
            message=b"m",
            week=date(2026, 11, 16),
        )
    )


def test_a_digest_has_a_page_without_an_incident(office: Office, tmp_path: Path) -> None:
    number = a_digest(office)
    app = make_app(
        PageSettings(maildir=tmp_path),
        office.engine,
        read,
        kept_by(lambda sha256: (tmp_path / sha256).open("rb")),
    )
    with TestClient(app) as client:
        assert "improvements of a week" in client.get(f"/report/r{number}").text
        assert client.get(f"/report/r{number}.json").json()["incident"] is None
        assert client.get("/reports").status_code == client.get("/").status_code == 200
