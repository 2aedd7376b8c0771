"""Moderation on a real database: what people decided counts, what is stopped stays, what has
changed since is looked at, pages decide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.testclient import TestClient

from swingbot.adapters.maildir import MaildirArchive, deliver
from swingbot.app.mail import mail_rules
from swingbot.app.settings import MailSection
from swingbot.core.mail.encoding import Envelope, encode, message_id
from swingbot.core.mail.message import Mail as Letter
from swingbot.core.model.statuses import FirstState
from swingbot.core.moderation.filing import Addressed, Filing
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.moderation.send_check import SendRules
from swingbot.service.ports.reports import NewReport
from swingbot.service.report.send import DeliveryFate, SendResult, send_due
from swingbot.web.access.session import operator_key
from swingbot.web.app import make_app
from swingbot_db import moderation, read, reports
from tests import builders as make
from tests.fakes.pages import SECRET, writing_routes

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KIND = ReportClass(metric=make.METRIC, testbox="vm-icount", gates=("code", "reproduced"))
LIST = "linux-mm@lists.example.org"


class Taking:
    """A mail server that takes everything."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, ...]] = []

    def send(
        self, message: bytes, recipients: Sequence[str], *, patient: bool = False
    ) -> dict[str, str]:
        self.taken.append(tuple(recipients))
        return {}


@dataclass
class Office:
    """Reports of different commits of one tree, and what sends them."""

    conn: sa.Connection
    engine: sa.Engine
    place: Path
    mailer: Taking
    made: int = 0

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
        number = reports.reserve_report_id(self.conn)
        identity = message_id(f"i{incident}", "first", 1, "example.org")
        letter = Letter(
            subject=f"mm: commit {self.made} is slower <b>", body="Hello,\n\nplease look.\n"
        )
        message = encode(
            letter, Envelope(sender="bot@example.org", to=to, cc=cc, message_id=identity, date=NOW)
        )
        reports.add_report(
            self.conn,
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
            ),
        )
        self.conn.execute(
            sa.text("UPDATE outbox SET next_try = :now WHERE report = :id"),
            {"now": NOW, "id": number},
        )
        return number

    def send(
        self, rules: SendRules | None = None, now: datetime = NOW, archive: Path | None = None
    ) -> list[SendResult]:
        where = MaildirArchive(
            path=self.place / "sent", authoritative=False, copies=(archive,) if archive else ()
        )
        return send_due(
            reports.PostgresOutbox(self.engine), self.mailer, where, now, rules or SendRules()
        )

    def facts(self, number: int) -> reports.Report:
        return reports.get_report(self.conn, number)


@pytest.fixture
def office(conn: sa.Connection, engine: sa.Engine, tmp_path: Path) -> Office:
    make.a_tree(conn)
    make.a_testbox(conn)
    return Office(conn, engine, tmp_path, Taking())


def test_what_people_decided_is_the_record_of_its_class(office: Office) -> None:
    for n in range(3):
        reports.release(office.conn, office.report(), who="ada", why="" if n else "fine")
    reports.drop(office.conn, office.report(), who="ada", why="noise")
    other = ReportClass(metric=make.METRIC, testbox="vm-icount", gates=("reproduced",))
    office.report(kind=other)
    assert moderation.class_record(office.conn, KIND) == ClassRecord(released=3, dropped=1)
    assert moderation.class_record(office.conn, other) == ClassRecord()
    assert [
        (c["gates"], c["reports"], c["released"], c["dropped"], c["earned"])
        for c in read.report_classes(office.conn)
    ] == [
        (["code", "reproduced"], 4, 3, 1, False),
        (["reproduced"], 1, 0, 0, False),
    ]


def test_the_last_decision_counts_and_each_report_once(office: Office) -> None:
    number = office.report()
    reports.release(office.conn, number, who="ada")
    reports.hold(office.conn, number, who="bob", why="asking first")
    reports.release(office.conn, number, who="bob")
    assert moderation.class_record(office.conn, KIND) == ClassRecord(released=1)
    reports.hold(office.conn, number, who="bob")
    reports.drop(office.conn, number, who="bob", why="no")
    assert moderation.class_record(office.conn, KIND) == ClassRecord(dropped=1)
    assert [
        (act["act"], act["who"], act["why"], act["was"])
        for act in read.report(office.conn, f"r{number}")["acts"]
    ][:2] == [
        ("release", "ada", None, "held"),
        ("hold", "bob", "asking first", "queued"),
    ]


def test_what_left_by_itself_or_had_met_a_server_counts_for_nothing(office: Office) -> None:
    reports.release(office.conn, office.report())  # released without a decision
    number = office.report()
    office.conn.execute(sa.text("UPDATE outbox SET tries = 1 WHERE report = :id"), {"id": number})
    reports.drop(office.conn, number, who="ada", why="its recipient is gone")
    assert moderation.class_record(office.conn, KIND) == ClassRecord()


def test_nothing_leaves_while_mail_is_stopped_and_everything_does_afterwards(
    office: Office,
) -> None:
    number = office.report("queued")
    assert moderation.set_switch(office.conn, stopped=True, who="ada", why="wrong facts")
    assert not moderation.set_switch(office.conn, stopped=True, who="bob", why="again")
    assert office.send() == [] and office.mailer.taken == []
    assert office.facts(number).state == "queued"
    assert any(
        "mail is stopped by ada: wrong facts" in problem["text"]
        for problem in read.status(office.conn)["problems"]
    )
    assert moderation.set_switch(office.conn, stopped=False, who="bob", why="")
    assert [sent.fate for sent in office.send()] == [DeliveryFate.SENT]


def test_the_setting_stops_all_mail_as_well(office: Office) -> None:
    office.report("queued")
    assert office.send(SendRules(stop=True)) == [] and office.mailer.taken == []


def test_a_list_that_had_its_mails_of_the_day_holds_the_next_one_and_a_day_later_it_leaves(
    office: Office,
) -> None:
    numbers = [office.report("queued", cc=(LIST,)) for _ in range(3)]
    elsewhere = office.report("queued", cc=("other@lists.example.org",))
    office.send(SendRules(per_list=2))
    assert [office.facts(number).state for number in (*numbers, elsewhere)] == [
        "sent",
        "sent",
        "held",
        "sent",
    ]
    assert f"{LIST} had 2 of 2 mails in the last 24 hours" in (
        office.facts(numbers[2]).reason or ""
    )
    reports.release(office.conn, numbers[2], who="ada")
    office.conn.execute(sa.text("UPDATE outbox SET next_try = :now"), {"now": NOW})
    office.send(SendRules(per_list=2), NOW + timedelta(hours=23))
    assert office.facts(numbers[2]).state == "held"
    reports.release(office.conn, numbers[2], who="ada")
    office.conn.execute(sa.text("UPDATE outbox SET next_try = :now"), {"now": NOW})
    office.send(SendRules(per_list=2), NOW + timedelta(hours=25))
    assert office.facts(numbers[2]).state == "sent"


def test_a_recipient_who_had_the_mails_of_the_day_gets_the_next_one_a_day_later(
    office: Office,
) -> None:
    numbers = [office.report("queued", to=("ada@example.org",)) for _ in range(3)]
    operators = office.report("queued", to=("Ada@example.org",))
    office.send(SendRules(per_recipient=2))
    assert [office.facts(number).state for number in (*numbers, operators)] == [
        *("sent", "sent", "held", "held"),
    ]
    assert "ada@example.org had 2 of 2 mails in the last 24 hours" in (
        office.facts(numbers[2]).reason or ""
    )
    # nothing is lost: released the next day, it is sent
    reports.release(office.conn, numbers[2], who="ada")
    office.conn.execute(sa.text("UPDATE outbox SET next_try = :now"), {"now": NOW})
    office.send(SendRules(per_recipient=2), NOW + timedelta(hours=25))
    assert office.facts(numbers[2]).state == "sent"
    # the operator's own address has no limit
    reports.release(office.conn, operators, who="ada")
    office.conn.execute(sa.text("UPDATE outbox SET next_try = :now"), {"now": NOW})
    office.send(
        SendRules(per_recipient=1, operator=("ada@example.org",)), NOW + timedelta(hours=25)
    )
    assert office.facts(operators).state == "sent"


def test_who_opts_out_after_a_mail_was_written_does_not_get_it(office: Office) -> None:
    number = office.report("queued", cc=("ada@example.net",))
    office.send(SendRules(opt_outs=("@example.net",)))
    assert office.facts(number).state == "held" and office.mailer.taken == []


def test_a_copy_that_comes_late_settles_a_mail_in_doubt(office: Office, tmp_path: Path) -> None:
    number = office.report("queued")
    office.conn.execute(sa.text("UPDATE report SET state = 'sending'"))  # its sender died
    copies = tmp_path / "copies"
    assert [sent.fate for sent in office.send(archive=copies)] == [DeliveryFate.UNKNOWN]
    assert office.send(archive=copies, now=NOW + timedelta(minutes=2)) == []
    deliver(copies, office.facts(number).message)
    assert office.send(archive=copies, now=NOW + timedelta(minutes=2)) == [], (
        "it was looked up a moment ago"
    )
    (found,) = office.send(archive=copies, now=NOW + timedelta(minutes=4))
    assert (
        found.fate is DeliveryFate.SENT
        and office.facts(number).state == "sent"
        and office.mailer.taken == []
    )


def test_a_week_has_one_digest(office: Office) -> None:
    week = date(2026, 11, 16)

    def add() -> int:
        number = reports.reserve_report_id(office.conn)
        identity = message_id("2026-W47", "digest", 1, "example.org")
        more: dict[str, Any] = {
            "to": ["a@b.org"],
            "cc": [],
            "subject": "s",
            "body": "b",
            "message": b"m",
            "week": week,
        }
        return reports.add_report(
            office.conn,
            NewReport(
                number=number,
                incident=None,
                kind="digest",
                revision=1,
                message_id=identity,
                **more,
            ),
        )

    assert add() == add()
    assert moderation.digest_weeks(office.conn, date(2026, 11, 1)) == {week}
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
    make.a_swing(conn, comparison, testbox, change_pct=9.0, direction="better", state="noted")
    (found,) = moderation.improvements_between(
        conn, NOW - timedelta(days=1), NOW + timedelta(days=1)
    )
    assert (found.metric, found.change_pct, found.page, found.commit) == (
        make.METRIC,
        9.0,
        f"/comparison/c{comparison}",
        "",
    )
    assert (
        moderation.improvements_between(conn, NOW + timedelta(seconds=1), NOW + timedelta(days=1))
        == []
    )


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
    assert client.post(f"/moderation/r{number}", data={"act": "release"}).status_code == 403
    assert client.post("/moderation/switch", data={"act": "stop"}).status_code == 403
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


def test_a_digest_has_a_page_without_an_incident(office: Office, tmp_path: Path) -> None:
    number = reports.reserve_report_id(office.conn)
    identity, week = message_id("2026-W47", "digest", 1, "example.org"), date(2026, 11, 16)
    more: dict[str, Any] = {
        "to": ["a@b.org"],
        "cc": [],
        "subject": "2 improvements",
        "body": "b",
        "message": b"m",
        "week": week,
    }
    reports.add_report(
        office.conn,
        NewReport(
            number=number,
            incident=None,
            kind="digest",
            revision=1,
            message_id=identity,
            **more,
        ),
    )
    app = make_app(
        PageSettings(maildir=tmp_path),
        office.engine,
        read,
        lambda sha256: (tmp_path / sha256).open("rb"),
    )
    with TestClient(app) as client:
        assert "improvements of a week" in client.get(f"/report/r{number}").text
        assert client.get(f"/report/r{number}.json").json()["incident"] is None
        assert client.get("/reports").status_code == client.get("/").status_code == 200
