"""Reports leave exactly once: real PostgreSQL, a real SMTP server, a real Maildir, and a sender
that is killed everywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from swingbot.adapters import maildir
from swingbot.adapters.maildir import MaildirArchive
from swingbot.adapters.smtp import SmtpMailer
from swingbot.core.mail.encoding import Envelope, encode, message_id
from swingbot.core.mail.message import Mail
from swingbot.service.ports.outbox import OutboxMail
from swingbot.service.ports.reports import NewReport
from swingbot.service.report.decide import decide
from swingbot.service.report.send import SETTLE, DeliveryFate, Sender
from swingbot_db.engine import make_engine
from swingbot_db.store import PgTransaction, transactions
from swingbot_db.store.outbox import sender_turn
from tests.attack import local_mail_flood
from tests.attack.target import Target
from tests.buildbot.ports import free_ports

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + SETTLE + timedelta(seconds=1)


class Server:
    """The embedded mail server as its own process, as in service."""

    def __init__(self, state: Path) -> None:
        self.port = free_ports(4) + 3
        self.inbox = state / "maildir"
        code = "from swingbot.app import settings, smtpd; smtpd.serve(settings.load())"
        environment = {
            **os.environ,
            "SWINGBOT_PATHS_STATE": str(state),
            "SWINGBOT_WEB_PORT": str(self.port - 3),
            "SWINGBOT_CONFIG": "",
        }
        self.process = subprocess.Popen([sys.executable, "-c", code], env=environment)
        deadline = time.monotonic() + 20
        while not any(
            c.status == psutil.CONN_LISTEN
            for c in psutil.Process(self.process.pid).net_connections("tcp")
        ):
            assert self.process.poll() is None and time.monotonic() < deadline, (
                "the mail server does not listen"
            )
            time.sleep(0.02)

    def mailer(self) -> SmtpMailer:
        return SmtpMailer(host="127.0.0.1", port=self.port, key=self.inbox.parent / "mail.key")

    def settle(self) -> None:
        """Wait until it has done with clients that are gone: as in service, where an interrupted
        mail is looked up ten seconds later."""
        quiet = 0
        while quiet < 3:
            busy = any(
                c.status != psutil.CONN_LISTEN
                for c in psutil.Process(self.process.pid).net_connections("tcp")
            )
            quiet = 0 if busy or any(self.inbox.glob("tmp/*")) else quiet + 1
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(10) == 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


def an_incident(conn: sa.Connection) -> int:
    commit = "a" * 40
    tree = conn.execute(
        sa.text(
            "INSERT INTO tree (name, url, branch, base_commit) VALUES ('t', 'u', 'b', "
            ":c) RETURNING id"
        ),
        {"c": commit},
    ).scalar_one()
    variant = conn.execute(
        sa.text(
            "INSERT INTO variant (tree, commit, subject, tree_hash, kconfig, compiler, "
            "build_key, origin)"
            " VALUES (:tree, :c, 's', :c, 'k', 'gcc', :key, 'branch') RETURNING id"
        ),
        {"tree": tree, "c": commit, "key": "b" * 64},
    ).scalar_one()
    incident: int = conn.execute(
        sa.text("INSERT INTO incident (tree, culprit) VALUES (:t, :v) RETURNING id"),
        {"t": tree, "v": variant},
    ).scalar_one()
    return incident


def a_report(engine: sa.Engine, revision: int = 1, incident: int | None = None) -> tuple[int, str]:
    """A stored report that is due at NOW; its id and its Message-ID."""
    with engine.begin() as conn:
        tx = PgTransaction(conn)
        number = tx.reports.reserve()
        mid = message_id(f"r{number}", "mail", revision, "example.org")
        message = encode(
            Mail(subject="s", body="Grüße\n.\n.dot\n"),
            Envelope(
                sender="bot <bot@example.org>",
                to=["dev@example.org"],
                cc=[],
                message_id=mid,
                date=NOW,
            ),
        )
        tx.reports.add(
            NewReport(
                number=number,
                incident=an_incident(conn) if incident is None else incident,
                kind="first" if revision == 1 else "update",
                revision=revision,
                message_id=mid,
                to=["Dev <dev@example.org>"],
                subject="s",
                body="b",
                message=message,
                state="queued",
            )
        )
        conn.execute(
            sa.text("UPDATE outbox SET next_try = :now WHERE report = :id"),
            {"now": NOW, "id": number},
        )
    return number, mid


def the_mail(engine: sa.Engine, number: int) -> OutboxMail:
    with engine.begin() as conn:
        mail = PgTransaction(conn).outbox.lock(number)
    assert mail is not None
    return mail


def a_sender(engine: sa.Engine, mailer: SmtpMailer, archive: Path, own: bool) -> Sender:
    """`own`: mail is delivered into the archive."""
    return Sender(
        begin=transactions(engine),
        turn=partial(sender_turn, engine),
        mailer=mailer,
        archive=MaildirArchive(path=archive, authoritative=own),
    )


def test_a_queued_report_arrives_once_and_byte_for_byte(engine: sa.Engine, server: Server) -> None:
    number, mid = a_report(engine)
    sender = a_sender(engine, server.mailer(), server.inbox, True)
    assert [sent.fate for sent in sender.send_due(NOW)] == [DeliveryFate.SENT]
    assert sender.send_due(LATER) == []
    (letter,) = maildir.letters(server.inbox)
    report = the_mail(engine, number)
    assert letter.message_id == mid
    assert letter.path.read_bytes() == report.message.replace(b"\r\n", b"\n")
    assert (report.state, report.sent_at, report.tries) == ("sent", NOW, 1)


def run_sender(
    url: str,
    server: Server,
    archive: Path,
    authoritative: bool,
    now: datetime,
    crash_at: int | None,
) -> int:
    """One pass of the sender in a process of its own (a fork: an interpreter's start would cost
    a second); 0, or -9 when it met the checkpoint."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if crash_at is not None:
                os.environ["SWINGBOT_CRASH_AT"] = str(crash_at)
            engine = make_engine(url)
            a_sender(engine, server.mailer(), archive, authoritative).send_due(now)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    server.settle()
    return status


def test_a_sender_killed_at_any_checkpoint_sends_exactly_one_mail(
    engine: sa.Engine, db_url: str, server: Server
) -> None:
    with engine.begin() as conn:
        incident = an_incident(conn)
    crash_at = 1
    while True:
        number, mid = a_report(engine, revision=crash_at, incident=incident)
        status = run_sender(db_url, server, server.inbox, True, NOW, crash_at)
        assert status in (0, -signal.SIGKILL)
        assert run_sender(db_url, server, server.inbox, True, LATER, None) == 0
        assert the_mail(engine, number).state == "sent"
        assert len(maildir.find(server.inbox, mid)) == 1
        if status == 0:
            break
        crash_at += 1
    assert crash_at > 14, (
        "there are checkpoints around four commits, in the conversation, and around the archive"
    )


def test_a_sender_killed_twice_in_recovery_sends_exactly_one_mail(
    engine: sa.Engine, db_url: str, server: Server
) -> None:
    with engine.begin() as conn:
        incident = an_incident(conn)
    crash_at, status, revision = 1, -signal.SIGKILL, 0
    while status != 0:
        for first in (6, 11):  # before and after the mail is handed over
            revision += 1
            number, mid = a_report(engine, revision=revision, incident=incident)
            assert run_sender(db_url, server, server.inbox, True, NOW, first) == -signal.SIGKILL
            status = run_sender(db_url, server, server.inbox, True, LATER, crash_at)
            assert run_sender(db_url, server, server.inbox, True, LATER + SETTLE, None) == 0
            assert the_mail(engine, number).state == "sent"
            assert len(maildir.find(server.inbox, mid)) == 1
        crash_at += 2


def test_a_foreign_server_never_gets_a_mail_twice_and_doubt_waits_for_a_person(
    engine: sa.Engine, db_url: str, server: Server, tmp_path: Path
) -> None:
    copies = tmp_path / "copies"
    with engine.begin() as conn:
        incident = an_incident(conn)
    ends = []
    crash_at, status = 1, -signal.SIGKILL
    while status != 0:
        number, mid = a_report(engine, revision=crash_at, incident=incident)
        status = run_sender(db_url, server, copies, False, NOW, crash_at)
        assert run_sender(db_url, server, copies, False, LATER, None) == 0
        ends.append((the_mail(engine, number).state, len(maildir.find(server.inbox, mid))))
        crash_at += 1
    not_taken_out, nothing_left = [("sent", 1)] * 5, [("unknown", 0)] * 4
    copy_kept, handed_over = [("sent", 1)] * 3, ends[9:11]
    # a server may do either with a client that died before its answer
    assert handed_over in ([("unknown", 1), ("unknown", 1)], [("unknown", 0), ("unknown", 1)])
    assert ends == [*not_taken_out, *nothing_left, *handed_over, *copy_kept, ("sent", 1)]


def test_an_unknown_report_is_sent_again_when_a_person_releases_it(
    engine: sa.Engine, db_url: str, server: Server, tmp_path: Path
) -> None:
    number, mid = a_report(engine)
    assert run_sender(db_url, server, tmp_path / "copies", False, NOW, 6) == -signal.SIGKILL
    assert run_sender(db_url, server, tmp_path / "copies", False, LATER, None) == 0
    report = the_mail(engine, number)
    assert report.state == "unknown" and "may or may not" in (report.error or "")
    with engine.begin() as conn:
        assert decide(PgTransaction(conn).outbox, number, "release", NOW, who="ada") == "queued"
    assert run_sender(db_url, server, tmp_path / "copies", False, LATER, None) == 0
    assert the_mail(engine, number).state == "sent" and len(maildir.find(server.inbox, mid)) == 1


def test_a_forged_message_id_does_not_make_an_interrupted_report_sent(
    engine: sa.Engine, db_url: str, server: Server
) -> None:
    number, mid = a_report(engine)
    assert run_sender(db_url, server, server.inbox, True, NOW, 6) == -signal.SIGKILL
    result = local_mail_flood.run(
        Target(smtp_port=server.port, state=server.inbox.parent), message_id=mid
    )
    assert result.held, result.line
    assert maildir.find(server.inbox, mid) == []
    assert run_sender(db_url, server, server.inbox, True, LATER, None) == 0
    (letter,) = maildir.find(server.inbox, mid)
    assert letter.path.read_bytes() == the_mail(engine, number).message.replace(b"\r\n", b"\n")
    assert the_mail(engine, number).state == "sent"


def test_an_interrupted_mail_is_not_sent_again_before_its_server_can_have_settled(
    engine: sa.Engine, db_url: str, server: Server
) -> None:
    number, mid = a_report(engine)
    assert run_sender(db_url, server, server.inbox, True, NOW, 6) == -signal.SIGKILL
    assert run_sender(db_url, server, server.inbox, True, NOW + SETTLE / 2, None) == 0
    assert the_mail(engine, number).state == "sending" and maildir.find(server.inbox, mid) == []


def test_a_dead_mail_server_delays_a_report_and_says_why(
    engine: sa.Engine, server: Server, tmp_path: Path
) -> None:
    number, _ = a_report(engine)
    unreachable = a_sender(engine, SmtpMailer(host="127.0.0.1", port=free_ports(1)), tmp_path, True)
    for tries, wait in ((1, 30), (2, 60), (3, 120)):
        due = the_mail(engine, number).next_try
        (sent,) = unreachable.send_due(due)
        mail = the_mail(engine, number)
        assert sent.fate is DeliveryFate.DELAYED
        assert (mail.state, mail.tries) == ("queued", tries)
        assert mail.next_try == due + timedelta(seconds=wait)
        assert "cannot be reached" in (mail.error or "")
    due = the_mail(engine, number).next_try
    assert unreachable.send_due(due - timedelta(seconds=1)) == []
    works = a_sender(engine, server.mailer(), tmp_path, True)
    assert [sent.fate for sent in works.send_due(due)] == [DeliveryFate.SENT]
    assert the_mail(engine, number).error is None


def test_two_senders_take_turns(engine: sa.Engine, server: Server) -> None:
    a_report(engine)
    sender = a_sender(engine, server.mailer(), server.inbox, True)
    with sender_turn(engine) as mine, sender_turn(engine) as other:
        assert mine and not other
        assert sender.send_due(NOW) == []
    with sender_turn(engine) as mine:
        assert mine
