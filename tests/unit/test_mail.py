"""A mail's bytes and its identity."""

from __future__ import annotations

from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swingbot.core.mail.addresses import BadAddress, addresses
from swingbot.core.mail.encoding import MAIL_BYTES, Envelope, encode, message_id
from swingbot.core.mail.message import Mail
from swingbot.core.text import plain
from tests.amount import examples

DATE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HEADERS = [
    "From",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Message-ID",
    "Auto-Submitted",
    "Precedence",
    "Content-Type",
    "Content-Transfer-Encoding",
    "MIME-Version",
]


def encoded(
    subject: str = "s",
    body: str = "b\n",
    sender: str = "Bot <bot@example.org>",
    to: tuple[str, ...] = ("Dev <dev@example.org>",),
) -> bytes:
    return encode(
        Mail(subject=subject, body=body),
        Envelope(
            sender=sender,
            to=to,
            cc=["list@example.org"],
            message_id="<r1.first.1@example.org>",
            date=DATE,
        ),
    )


def parsed(data: bytes) -> EmailMessage:
    message = message_from_bytes(data, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def test_a_message_id_is_derived_from_report_kind_and_revision_alone() -> None:
    assert message_id("r4", "first", 1, "example.org") == "<r4.first.1@example.org>"
    given_ids = {
        message_id(report, kind, revision, "example.org")
        for report in ("r1", "r11")
        for kind in ("first", "fixed")
        for revision in (1, 11)
    }
    assert len(given_ids) == 8


ODD_PARTS = [
    ("r 4", "first", 1, "d"),
    ("r4", "fi>rst", 1, "d"),
    ("r4", "first", 0, "d"),
    ("r4", "first", 1, "d\r\n"),
    ("r4", "first", 1, ""),
]


@pytest.mark.parametrize("parts", ODD_PARTS)
def test_a_message_id_of_odd_parts_is_refused(parts: tuple[str, str, int, str]) -> None:
    with pytest.raises(BadAddress):
        message_id(*parts)


def test_the_same_mail_has_the_same_bytes() -> None:
    assert encoded() == encoded()


def test_a_mail_is_one_plain_part_that_no_robot_answers() -> None:
    message = parsed(encoded())
    assert not message.is_multipart()
    assert message.get_content_type() == "text/plain"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"] == "<r1.first.1@example.org>"
    assert str(message["Date"]) == "Fri, 02 Jan 2026 03:04:05 +0000"
    assert (str(message["To"]), str(message["Cc"])) == ("Dev <dev@example.org>", "list@example.org")


def test_ascii_goes_as_7bit_and_all_else_as_8bit_never_quoted() -> None:
    line = "x" * 78 + "\n"
    assert parsed(encoded(body=line))["Content-Transfer-Encoding"] == "7bit"
    assert line.encode().replace(b"\n", b"\r\n") in encoded(body=line)
    assert parsed(encoded(body="Jörg 漢\n"))["Content-Transfer-Encoding"] == "8bit"
    assert "Jörg 漢\r\n".encode() in encoded(body="Jörg 漢\n")


HOSTILE = st.one_of(
    st.text(max_size=300),
    st.text(alphabet='aé漢\r\n\t\x0b\x0c\x1c\u2028\x85 :=?_<>@,;"\\', max_size=300),
    st.sampled_from(["=?utf-8?q?=0d=0aBcc:_x?=", "=??Q?=0D", "x" * 3000]),
)


@settings(max_examples=examples(150))
@given(HOSTILE, st.lists(HOSTILE, max_size=4))
def test_no_text_adds_a_header_or_gets_lost(subject: str, lines: list[str]) -> None:
    body = "".join(f"{plain.clean(line)}\n" for line in [*lines, "end"])
    data = encoded(subject=subject, body=body)
    message = parsed(data)
    assert sorted(message.keys()) == sorted(HEADERS)
    assert message.get_content().replace("\r\n", "\n") == body
    head, _, rest = data.partition(b"\r\n\r\n")
    assert head.isascii()
    assert rest == body.encode().replace(b"\n", b"\r\n")
    assert b"\n" not in data.replace(b"\r\n", b"")
    assert all(len(line) <= 998 for line in head.split(b"\r\n"))


@settings(max_examples=examples(150))
@given(HOSTILE)
@example("0 0000000000000000¡¡¡¡¡¡¡¡¡¡\u0898 ¡ ¡")
def test_a_subject_comes_back_as_it_went(subject: str) -> None:
    assert str(parsed(encoded(subject=subject))["Subject"]) == plain.cut(subject, 200).replace(
        "=?", "= ?"
    )


@pytest.mark.parametrize(
    "subject",
    [
        f"[linux:b] [mm/x] a8fa31873154: will-it-scale.{'per_process_' * 9}ops 9.3% worse",
        "a" * 180,
        "word " * 30,
        "",
    ],
)
def test_an_ascii_subject_is_sent_as_it_is_and_folded_at_spaces(subject: str) -> None:
    data = encoded(subject=subject)
    assert b"=?" not in data.partition(b"\r\n\r\n")[0] and b"\r\n \r\n" not in data
    assert str(parsed(data)["Subject"]) == subject.strip()


def test_a_line_break_in_an_encoded_word_adds_no_header() -> None:
    for subject in ("=?utf-8?q?=0d=0aBcc:_a@b?=", "x =??Q?=0D=0ABcc:_a@b"):
        assert b"\r\nBcc" not in encoded(subject=subject)
        message = parsed(encoded(subject=subject, to=(f'"{subject}" <dev@example.org>',)))
        assert sorted(message.keys()) == sorted(HEADERS)


@settings(max_examples=examples(100))
@given(HOSTILE)
def test_a_body_with_control_characters_adds_no_header_and_no_line(text: str) -> None:
    data = encoded(body=text)
    message = parsed(data)
    assert sorted(message.keys()) == sorted(HEADERS)
    assert len(data.partition(b"\r\n\r\n")[2].split(b"\r\n")) <= text.count("\n") + 2


@settings(max_examples=examples(100))
@given(HOSTILE)
def test_a_hostile_display_name_is_an_error_or_stays_a_name(name: str) -> None:
    try:
        message = parsed(encoded(to=(f"{name} <dev@example.org>",)))
    except BadAddress:
        return
    assert sorted(message.keys()) == sorted(HEADERS)
    assert [address.addr_spec for address in message["To"].addresses] == ["dev@example.org"]


@pytest.mark.parametrize(
    "bad",
    ["unknown", "a@b\r\nBcc: c@d", "a@b@c", "jörg@example.org", "a b@example.org", "a@b, c@d", ""],
)
def test_a_recipient_that_is_no_single_address_is_a_clear_error(bad: str) -> None:
    with pytest.raises(BadAddress, match="address"):
        encoded(to=(bad,))


def test_a_mail_to_nobody_is_an_error() -> None:
    with pytest.raises(BadAddress, match=r"set mail\.to"):
        encoded(to=())


def test_a_list_of_addresses_is_read_without_the_names() -> None:
    assert addresses('"A, B" <a@x.org>, c@y.org') == ["a@x.org", "c@y.org"]
    assert addresses("") == []
    with pytest.raises(BadAddress):
        addresses("unknown")


def test_an_answer_names_the_mails_before_it_unfolded_and_once_each() -> None:
    long = f"<{'x' * 150}@example.org>"
    mail = Mail(subject="Re: s", body="b\n", in_reply_to=long, references=("<a@example.org>", long))
    data = encode(
        mail,
        Envelope(
            sender="Bot <bot@example.org>",
            to=["dev@example.org"],
            cc=[],
            message_id="<r1.first.1@example.org>",
            date=DATE,
        ),
    )
    assert f"\r\nIn-Reply-To: {long}\r\n".encode() in data
    assert f"\r\nReferences: <a@example.org>\r\n {long}\r\n".encode() in data


def test_robots_and_our_archive_find_what_they_look_for() -> None:
    mail = Mail(subject="s", body="b\n")
    message = parsed(
        encode(
            mail,
            Envelope(
                sender="bot@example.org",
                to=["dev@example.org"],
                cc=[],
                message_id="<r1.first.1@example.org>",
                date=DATE,
                report="r1",
                list_id="reports.example.org",
                reply_to="a@b.c",
            ),
        )
    )
    assert (message["List-Id"], message["X-Swingbot-Report"], str(message["Reply-To"])) == (
        "<reports.example.org>",
        "r1",
        "a@b.c",
    )
    for wrong in ({"report": "r1\r\nBcc: x"}, {"list_id": "a>\r\nBcc: x"}):
        with pytest.raises(BadAddress):
            encode(
                mail,
                Envelope(
                    sender="bot@example.org",
                    to=["dev@example.org"],
                    cc=[],
                    message_id="<r1.first.1@example.org>",
                    date=DATE,
                    **wrong,
                ),
            )


def test_a_mail_with_fifteen_long_names_stays_under_10_kb() -> None:
    people = [f"{'漢' * 80} <{n}{'a' * 50}@example.org>" for n in range(15)]
    data = encode(
        Mail(subject="漢" * 3000, body="x" * 70 + "\n"),
        Envelope(
            sender="Bot <bot@example.org>",
            to=people[:1],
            cc=people[1:],
            message_id="<r1.first.1@example.org>",
            date=DATE,
        ),
    )
    assert len(parsed(data)["Cc"].addresses) == 14
    full = encode(
        Mail(subject="漢" * 3000, body=("x" * 70 + "\n") * 110),
        Envelope(
            sender="Bot <bot@example.org>",
            to=people[:1],
            cc=people[1:],
            message_id="<r1.first.1@example.org>",
            date=DATE,
        ),
    )
    assert len(full) <= MAIL_BYTES
    assert [address.display_name for address in parsed(full)["Cc"].addresses] == [""] * 14
