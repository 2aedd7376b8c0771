"""Our SMTP client against real servers, well-behaved and not, and the Maildir they deliver to."""

from __future__ import annotations

import asyncio
import base64
import shutil
import smtplib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult

from swingbot.adapters import local_mail, maildir
from swingbot.adapters.maildir import MaildirArchive
from swingbot.adapters.smtp import SmtpMailer
from swingbot.app import smtpd
from swingbot.core.mail.encoding import Envelope, encode
from swingbot.core.mail.message import Mail
from swingbot.service.report.send import MailDelayed, MailRefused, MailUncertain

Serve = Callable[..., int]
Script = Callable[[list[bytes]], int]


def a_mail(body: str = "Grüße\n.\n..two dots\n", number: int = 1) -> bytes:
    message_id, date = f"<r{number}.first.1@example.org>", datetime(2026, 1, 2, tzinfo=UTC)
    return encode(
        Mail(subject="s", body=body),
        Envelope(
            sender="Bot <bot@example.org>",
            to=["dev@example.org"],
            cc=[],
            message_id=message_id,
            date=date,
        ),
    )


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start an aiosmtpd server with a handler and options; gives its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    servers: list[asyncio.Server] = []

    def start(handler: object, **options: Any) -> int:
        factory = partial(SMTP, handler, hostname="test", **options)
        server = asyncio.run_coroutine_threadsafe(
            loop.create_server(factory, "127.0.0.1", 0), loop
        ).result(10)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield start
    for server in servers:
        loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def send(port: int, message: bytes, *recipients: str, timeout: float = 10) -> dict[str, str]:
    return dict(
        SmtpMailer(host="127.0.0.1", port=port, timeout=timeout).send(
            message, recipients or ("dev@example.org",)
        )
    )


def test_a_mail_is_delivered_byte_for_byte_and_found_by_its_message_id(
    serve: Serve, tmp_path: Path
) -> None:
    port = serve(smtpd.Deliver(tmp_path / "maildir"))
    assert send(port, a_mail()) == {}
    (letter,) = maildir.find(tmp_path / "maildir", "<r1.first.1@example.org>")
    assert letter.path.read_bytes() == a_mail().replace(b"\r\n", b"\n")
    mail = message_from_bytes(letter.path.read_bytes(), policy=default)
    assert mail.get_content() == "Grüße\n.\n..two dots\n"
    assert maildir.find(tmp_path / "maildir", "<r2.first.1@example.org>") == []


def test_what_is_sent_twice_lies_there_twice(serve: Serve, tmp_path: Path) -> None:
    port = serve(smtpd.Deliver(tmp_path))
    send(port, a_mail())
    send(port, a_mail())
    assert len(maildir.find(tmp_path, "<r1.first.1@example.org>")) == 2


def test_a_mail_beyond_the_size_limit_is_refused_for_good(serve: Serve, tmp_path: Path) -> None:
    port = serve(smtpd.Deliver(tmp_path), data_size_limit=2000)
    with pytest.raises(MailRefused, match="552"):
        send(port, a_mail(body="x" * 3000 + "\n"))
    assert maildir.letters(tmp_path) == []


def test_a_full_disk_delays_a_mail(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "maildir").write_text("a file where the Maildir should be")
    with pytest.raises(MailDelayed, match="451 cannot store mail now"):
        send(serve(smtpd.Deliver(tmp_path / "maildir")), a_mail())


KEY = b"k" * 32


@pytest.fixture
def guarded(serve: Serve, tmp_path: Path) -> int:
    """The port of a server that delivers to `tmp_path` / "maildir" for who knows KEY."""
    (tmp_path / "key").write_text(KEY.hex())
    return serve(
        smtpd.DeliverOwn(tmp_path / "maildir", KEY),
        auth_require_tls=False,
        auth_exclude_mechanism=("LOGIN", "PLAIN"),
    )


def test_the_embedded_server_delivers_only_for_who_knows_its_key(
    guarded: int, tmp_path: Path
) -> None:
    with pytest.raises(MailDelayed, match=r"requires the key of mail\.key_file"):
        send(guarded, a_mail())
    (tmp_path / "wrong").write_text((b"w" * 32).hex())
    (tmp_path / "torn").write_text("no hexadecimal text")
    for name, error in (
        ("wrong", "has another key than"),
        ("torn", "cannot read the key"),
        ("missing", "cannot read the key"),
    ):
        mailer = SmtpMailer(host="127.0.0.1", port=guarded, key=tmp_path / name)
        with pytest.raises(MailDelayed, match=error):
            mailer.send(a_mail(), ["dev@example.org"])
    assert maildir.letters(tmp_path / "maildir") == []
    mailer = SmtpMailer(host="127.0.0.1", port=guarded, key=tmp_path / "key")
    assert mailer.send(a_mail(), ["dev@example.org"]) == {}
    assert len(maildir.letters(tmp_path / "maildir")) == 1


def test_a_mail_without_the_key_is_refused_at_its_sender(guarded: int, tmp_path: Path) -> None:
    with smtplib.SMTP("127.0.0.1", guarded, timeout=10) as client:
        client.ehlo()
        assert client.mail("bot@example.org")[0] == 530
        assert client.docmd("DATA")[0] == 503
        assert client.docmd("AUTH", "PLAIN AGEAYQ==")[0] == 504
        code = client.docmd("AUTH", "X-SWINGBOT")[0]
        # the answer to an earlier challenge is worth nothing
        answer = local_mail.proof(KEY, b"0" * 64).encode()
        assert (code, client.docmd(base64.b64encode(answer).decode())[0]) == (334, 535)
        assert client.mail("bot@example.org")[0] == 530
    assert not (tmp_path / "maildir").exists()


def test_no_other_server_is_shown_an_answer_made_with_the_key(serve: Serve, tmp_path: Path) -> None:
    """A server that offers other mechanisms gets the mail without a sign of the key."""
    (tmp_path / "key").write_text(KEY.hex())
    seen: list[object] = []

    def authenticate(*arguments: object) -> AuthResult:
        seen.append(arguments)
        return AuthResult(success=True)

    handler = smtpd.Deliver(tmp_path / "maildir")
    port = serve(handler, auth_require_tls=False, authenticator=authenticate)
    mailer = SmtpMailer(host="127.0.0.1", port=port, key=tmp_path / "key")
    assert (mailer.send(a_mail(), ["dev@example.org"]), seen) == ({}, [])


class Picky:
    """Refuses recipients by their name: `never`, `later`."""

    async def handle_RCPT(
        self, server: object, session: object, envelope: object, address: str, options: object
    ) -> str:
        name = address.partition("@")[0]
        if name in ("never", "later"):
            return {"never": "550 no such user", "later": "450 mailbox busy"}[name]
        envelope.rcpt_tos.append(address)  # type: ignore[attr-defined]
        return "250 OK"

    async def handle_DATA(self, server: object, session: object, envelope: object) -> str:
        return "250 OK"


def test_a_mail_taken_for_some_recipients_is_sent_and_the_others_are_named(serve: Serve) -> None:
    assert send(serve(Picky()), a_mail(), "dev@example.org", "never@example.org") == {
        "never@example.org": "550 no such user"
    }


def test_a_mail_taken_for_nobody_is_refused_unless_a_later_try_may_help(serve: Serve) -> None:
    port = serve(Picky())
    with pytest.raises(MailRefused, match=r"never@example\.org: 550 no such user"):
        send(port, a_mail(), "never@example.org")
    with pytest.raises(MailDelayed, match=r"later@example\.org: 450 mailbox busy"):
        send(port, a_mail(), "never@example.org", "later@example.org")


def test_no_server_delays_a_mail_and_says_where_none_is() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        port = taken.getsockname()[1]
        with pytest.raises(
            MailDelayed, match=f"127.0.0.1:{port} cannot be reached: .*refused"
        ) as caught:
            send(port, a_mail())
        assert caught.value.unreachable


@pytest.fixture
def scripted() -> Iterator[Script]:
    """A server that answers each line it gets with the next of its lines, then breaks off;
    DATA's text is one line to it."""
    threads: list[threading.Thread] = []

    def start(answers: list[bytes]) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(10)

        def converse() -> None:
            connection, _ = listener.accept()
            with listener, connection, connection.makefile("rb") as lines:
                in_data = False
                for answer in answers:
                    connection.sendall(answer)
                    in_data = answer.startswith(b"354")
                    for line in lines:
                        if not in_data or line == b".\r\n":
                            break

        threads.append(threading.Thread(target=converse))
        threads[-1].start()
        port: int = listener.getsockname()[1]
        return port

    yield start
    for thread in threads:
        thread.join(10)


HELLO, OK, GO = b"220 hi\r\n", b"250 OK\r\n", b"354 go\r\n"
EHLO = b"250-hi\r\n250 8BITMIME\r\n"


def test_a_server_that_breaks_off_before_the_mail_delays_it(scripted: Script) -> None:
    with pytest.raises(MailDelayed, match="closed the connection before it got the mail"):
        send(scripted([HELLO, EHLO, OK]), a_mail())


def test_a_server_that_breaks_off_after_the_mail_leaves_us_in_doubt(scripted: Script) -> None:
    with pytest.raises(
        MailUncertain, match="got the mail and closed the connection before its response"
    ):
        send(scripted([HELLO, EHLO, OK, OK, GO]), a_mail())


def test_a_mail_that_was_taken_is_sent_however_the_server_says_goodbye(scripted: Script) -> None:
    assert send(scripted([HELLO, EHLO, OK, OK, GO, OK]), a_mail()) == {}


@pytest.mark.parametrize(
    ("answers", "error", "match"),
    [
        ([b"421 too busy\r\n"], MailDelayed, "421 too busy"),
        ([HELLO, EHLO, b"550 not you\r\n"], MailRefused, "refuses the sender: 550 not you"),
        ([HELLO, EHLO, b"451 not now\r\n"], MailDelayed, "refuses the sender: 451 not now"),
        ([HELLO, EHLO, OK, OK, b"554 no\r\n"], MailRefused, "refuses the mail: 554 no"),
        ([HELLO, EHLO, OK, OK, GO, b"550 spam\r\n"], MailRefused, "refuses the mail: 550 spam"),
        (
            [HELLO, EHLO, OK, OK, GO, b"452 disk full\r\n"],
            MailDelayed,
            "refuses the mail: 452 disk full",
        ),
        ([HELLO, b"250 hi\r\n"], MailRefused, "does not accept 8-bit mail"),
        ([b"\xff\xfe rubbish\r\n"], MailDelayed, "."),
    ],
)
def test_each_answer_of_a_server_is_for_ever_or_for_now(
    scripted: Script, answers: list[bytes], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        send(scripted(answers), a_mail())


def test_a_server_that_says_nothing_costs_the_timeout_and_no_more() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(MailDelayed, match="timed out"),
    ):
        send(silent.getsockname()[1], a_mail(), timeout=0.2)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_a_server_that_offers_encryption_gets_it(serve: Serve, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=lab",
        "-days",
        "2",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    assert (
        send(
            serve(smtpd.Deliver(tmp_path / "maildir"), tls_context=context, require_starttls=True),
            a_mail(),
        )
        == {}
    )
    assert len(maildir.letters(tmp_path / "maildir")) == 1


def test_a_maildir_that_is_not_there_is_empty_and_rubbish_in_it_hurts_nobody(
    tmp_path: Path,
) -> None:
    testbox = tmp_path / "maildir"
    assert maildir.letters(testbox) == []
    maildir.deliver(testbox, a_mail())
    for name, rubbish in {
        "1": b"",
        "2": b"\x00\xff\r\n\r\n",
        "3": b"Message-ID: =?utf-8?q?=0d?=\nSubject: =?x?y?z\n",
        "4": b"Message-ID: <<<@@>\n\n",
    }.items():
        (testbox / "new" / name).write_bytes(rubbish)
    (testbox / "cur" / "5").symlink_to(testbox / "nowhere")
    assert len(maildir.letters(testbox)) == 5
    assert len(maildir.find(testbox, "<r1.first.1@example.org>")) == 1


def test_the_archive_keeps_copies_only_where_mail_is_not_delivered_to_it(tmp_path: Path) -> None:
    for authoritative, kept in ((True, False), (False, True)):
        archive = MaildirArchive(path=tmp_path / str(authoritative), authoritative=authoritative)
        assert not archive.holds("<r1.first.1@example.org>")
        archive.keep(a_mail())
        assert archive.holds("<r1.first.1@example.org>") is kept


class Greylisting(Picky):
    """Puts one recipient off."""

    async def handle_RCPT(
        self, server: object, session: object, envelope: Any, address: str, options: object
    ) -> str:
        if address.startswith("slow"):
            return "451 come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"


def test_a_mail_waits_for_a_recipient_that_is_put_off_and_not_for_ever(serve: Serve) -> None:
    mailer = SmtpMailer(host="127.0.0.1", port=serve(Greylisting()))
    with pytest.raises(MailDelayed, match="defers slow@example.org: 451 come back later"):
        mailer.send(a_mail(), ["dev@example.org", "slow@example.org"], patient=True)
    assert mailer.send(a_mail(), ["dev@example.org", "slow@example.org"]) == {
        "slow@example.org": "451 come back later"
    }


def test_hidden_copies_stand_in_no_header_and_their_trouble_stops_nobody(
    serve: Serve, tmp_path: Path
) -> None:
    class Recording(Greylisting):
        recipients: tuple[str, ...] = ()
        content = b""

        async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
            self.recipients, self.content = tuple(envelope.rcpt_tos), envelope.content
            return "250 taken"

    server = Recording()
    port = serve(server)
    SmtpMailer(host="127.0.0.1", port=port, hidden=("archive@example.org",)).send(
        a_mail(), ["dev@example.org"], patient=True
    )
    assert (
        server.recipients == ("dev@example.org", "archive@example.org")
        and b"archive@example.org" not in server.content
    )
    refused = SmtpMailer(host="127.0.0.1", port=port, hidden=("slow@example.org",)).send(
        a_mail(), ["dev@example.org"], patient=True
    )
    assert refused == {"slow@example.org": "451 come back later"}
