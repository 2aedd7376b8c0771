"""A patch series as it is sent: as git writes it, as mailers change it, and what is refused."""

from __future__ import annotations

import base64
import quopri
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swingbot.adapters.patch_files import patch_sources
from swingbot.core import limits
from swingbot.core.patchset.model import (
    PatchFile,
    PatchSeries,
    PatchSource,
    SeriesError,
    SeriesPatch,
    commit_message,
)
from swingbot.core.patchset.quilt import parse_series_file
from swingbot.core.patchset.read import read_file, read_series
from swingbot.core.patchset.subject import read_subject
from tests.amount import examples
from tests.patch_series import Change, a_diff, a_mail, mailbox, make_repo

CHANGES = [
    Change(files={"mm/memory.c": b"a\nb\n", "dos.txt": b"x\r\ny\r\n"}, message="base"),
    Change(
        files={"mm/memory.c": b"a\nB\n- \n"},
        message="mm: [RFC] größe of a folio\n\nWhy it is so.\n\nSigned-off-by: A <a@b>\n",
        author="Jörg Müller, Jr. <joerg@example.org>",
    ),
    Change(files={"dos.txt": b"x\r\nz\r\n"}, message=f"dos: {'long ' * 30}subject"),
    Change(
        files={"mm/memory.c": b"a\nB\n"}, message="mm: remove a line that looks like a signature"
    ),
]
SUBJECTS = [
    "mm: [RFC] größe of a folio",
    f"dos: {'long ' * 30}subject",
    "mm: remove a line that looks like a signature",
]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("series") / "repo.git"
    make_repo(path, CHANGES)
    return path


def read(data: bytes | str, name: str = "s.mbx") -> PatchSeries:
    return read_file(name, data.encode() if isinstance(data, str) else data)


def subjects(series: PatchSeries) -> list[str]:
    return [patch.subject for patch in series.patches]


def refusal(*data: bytes | str) -> str:
    """The sentence with which `data`, a file each, is refused."""
    sources = [
        PatchSource(
            name=f"f{number}",
            files=(PatchFile(name=f"f{number}", data=d.encode() if isinstance(d, str) else d),),
        )
        for number, d in enumerate(data)
    ]
    with pytest.raises(SeriesError) as refused:
        read_series(sources)
    sentence = str(refused.value)
    assert "\n" not in sentence and len(sentence) < 1000, sentence
    return sentence


# -- what git writes


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--cover-letter", "--thread"),
        ("--encode-email-headers", "--from=Committer <c@example.org>"),
        ("--attach",),
        ("--inline", "--cover-letter"),
        ("-v3", "--no-signature", "--subject-prefix=RFC PATCH net-next"),
        ("--no-numbered", "--no-stat", "--full-index", "--signature=-- "),
    ],
)
def test_what_format_patch_writes_is_read_whatever_its_options(
    repo: Path, options: tuple[str, ...]
) -> None:
    series = read(mailbox(repo, 3, *options))
    assert subjects(series) == SUBJECTS
    assert [patch.number for patch in series.patches] == [1, 2, 3]
    first = series.patches[0]
    assert first.author == "Jörg Müller, Jr <joerg@example.org>", "git too takes the last dot off"
    assert first.date == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert first.message == f"{SUBJECTS[0]}\n\nWhy it is so.\n\nSigned-off-by: A <a@b>\n"
    assert (first.message_id is not None) == ("--thread" in options)
    assert [letter.subject for letter in series.left_out] == (
        ["[PATCH 0/3] *** SUBJECT HERE ***"] if "--cover-letter" in options else []
    )
    assert b"+z\r\n" in series.patches[1].diff and b"\n-- \n" in series.patches[2].diff
    assert not re.search(rb"^\d\.\d", series.patches[2].diff, re.M), "no signature"


@pytest.mark.parametrize("options", [(), ("--attach",), ("--encode-email-headers", "--thread")])
def test_mails_that_went_through_smtp_with_crlf_lose_one_cr_of_each_line(
    repo: Path, options: tuple[str, ...]
) -> None:
    testbox = mailbox(repo, 3, *options)
    plain = read(testbox)
    assert read(testbox.replace(b"\n", b"\r\n")) == plain
    assert b"z\r\n" in plain.patches[1].diff


def test_the_cr_of_each_diff_is_judged_by_its_own_lines() -> None:
    unix, dos = (
        b"diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-x%s\n+y%s\n"
        % (*[name] * 4, *[cr] * 2)
        for name, cr in ((b"unix", b""), (b"dos", b"\r"))
    )
    head = b"From: A <a@b>\nSubject: [PATCH] x\n\nWhy.\n---\n"
    converted = unix.replace(b"\n", b"\r\n")
    for body in (converted + dos, dos + converted):
        (patch,) = read(head + body).patches
        assert patch.diff == body.replace(converted, unix)


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64"])
def test_an_encoded_body_is_decoded_and_the_cr_of_a_file_stays(repo: Path, encoding: str) -> None:
    plain = read(mailbox(repo, 1, "main~1"))
    head, _, body = mailbox(repo, 1, "main~1").partition(b"\n\n")
    quoted = quopri.encodestring(body.replace(b"\r", b"=0D_")).replace(b"=3D0D_", b"=0D")
    encoded = base64.encodebytes(body) if encoding == "base64" else quoted
    head = re.sub(rb"\nContent-Transfer-Encoding:[^\n]*", b"", head)
    again = read(head + f"\nContent-Transfer-Encoding: {encoding}\n\n".encode() + encoded)
    assert again == plain and b"\r\n" in again.patches[0].diff
    mailed = base64.encodebytes(body.replace(b"\n", b"\r\n"))
    assert read(head + b"\nContent-Transfer-Encoding: base64\n\n" + mailed) == plain


def test_a_mail_in_latin_1_has_its_message_in_utf_8_and_its_diff_as_it_is() -> None:
    headers = (
        "MIME-Version: 1.0\nContent-Type: text/plain; charset=ISO-8859-1\n"
        "Content-Transfer-Encoding: 8bit\n"
    )
    text = a_mail(
        "=?iso-8859-1?q?mm=3A_gr=F6=DFe?=", f"Größe.\n---\n{a_diff(new='ö')}", headers=headers
    )
    patch = read(text.decode().encode("latin-1")).patches[0]
    assert patch.message == "mm: größe\n\nGröße.\n" and patch.diff.endswith(b"+\xf6\n")
    unknown = text.replace(b"ISO-8859-1", b"x-nothing").decode().encode("latin-1")
    assert read(unknown).patches[0].message == patch.message


def test_a_patch_attached_to_a_letter_is_read_with_the_letters_words() -> None:
    for kind, name in (("text/x-patch", "x.patch"), ("application/octet-stream", "x.diff")):
        part = base64.encodebytes(a_diff().encode()).decode()
        body = (
            "--b\nContent-Type: text/plain; charset=utf-8\n\nWhy.\n-- \nAda\n"
            f'--b\nContent-Type: {kind}\nContent-Disposition: attachment; filename="{name}"\n'
            f"Content-Transfer-Encoding: base64\n\n{part}"
            "--b\nContent-Type: image/png\n\n\x89\n--b--\n"
        )
        kind_of_all = 'Content-Type: multipart/mixed; boundary="b"\n'
        patch = read(a_mail("[PATCH] mm: x", body, headers=kind_of_all)).patches[0]
        assert (patch.message, patch.diff) == ("mm: x\n\nWhy.\n", a_diff().encode())


def test_patches_attached_as_files_of_format_patch_are_a_patch_each(repo: Path) -> None:
    pieces = [mailbox(repo, 1, f"main~{back}", "-N") for back in (2, 1, 0)]
    body = "--b\n\nPlease try these.\n" + "".join(
        f'--b\nContent-Type: text/x-patch; name="{n}.patch"\nContent-Disposition: attachment\n'
        f"Content-Transfer-Encoding: base64\n\n{base64.encodebytes(piece).decode()}"
        for n, piece in enumerate(pieces)
    )
    mail = a_mail(
        "my patches", f"{body}--b--\n", headers="Content-Type: multipart/mixed; boundary=b\n"
    )
    series = read(mail)
    assert subjects(series) == SUBJECTS
    assert [letter.subject for letter in series.left_out] == ["my patches"]


# -- the message


def test_headers_in_the_body_override_and_notes_and_signature_are_dropped() -> None:
    body = (
        "From: =?utf-8?q?J=C3=B6rg?= <j@example.org>\nSubject: mm: the real\n subject\n"
        "Date: Mon, 1 Jan 2024 00:00:00 +0100\n\nWhy.\n\n\n\nMore.  \n\nSigned-off-by: J "
        "<j@example.org>\n"
        f"---\nv2: notes\n\n mm/memory.c | 2 +-\n\n{a_diff()}-- \n2.39.5\n"
    )
    patch = read(
        a_mail("[PATCH] list: munged", body, sender="J via list <list@example.org>")
    ).patches[0]
    assert (patch.author, patch.subject) == ("Jörg <j@example.org>", "mm: the real subject")
    assert str(patch.date) == "2024-01-01 00:00:00+01:00"
    assert patch.message.endswith("\n\nWhy.\n\nMore.\n\nSigned-off-by: J <j@example.org>\n")
    assert patch.diff == a_diff().encode()


@pytest.mark.parametrize("line", ["-- >8 --", "----8<-----", "- - >8 - - cut here - - >8 - -"])
def test_what_stands_above_scissors_is_dropped(line: str) -> None:
    body = f"Hello,\n\nhow about this?\n{line}\nSubject: [PATCH] mm: x\n\nWhy.\n---\n{a_diff()}"
    assert read(a_mail("Re: a bug", body)).patches[0].message == "mm: x\n\nWhy.\n"


def test_a_line_that_is_no_scissors_stays() -> None:
    body = f"Why: a >8 b\n-- > 8 items\n---\n{a_diff()}"
    assert "a >8 b" in read(a_mail("[PATCH] x", body)).patches[0].message


@pytest.mark.parametrize(
    ("subject", "title", "number", "version"),
    [
        ("[PATCH v3 2/7] mm: x", "mm: x", (2, 7), 3),
        ("[PATCH 1/2] [media] x", "[media] x", (1, 2), 1),
        ("[RESEND][PATCHv2 net-next 03/10] x", "x", (3, 10), 2),
        ("[net-next 3/4] x", "x", (3, 4), 1),
        ("[PATCH 6.1 004/123] x", "x", (4, 123), 1),
        ("[PATCH v6.1 1/3] x", "x", (1, 3), 1),
        ("[media] x 1/2", "[media] x 1/2", (None, None), 1),
        ("[RFC PATCH V4] [RESEND] x", "x", (None, None), 4),
        ("[RFC PATCH 0/9 v2] x", "x", (0, 9), 2),
        ("[RFC PATCH V6 2/4 Resend] x", "x", (2, 4), 6),
        ("[PATCH_v3 1/2] x", "x", (1, 2), 3),
        ("[PATCH ver 2] x", "x", (None, None), 2),
        ("[PATCH] x (v2)", "x (v2)", (None, None), 2),
        ("[PATCH] V2: x", "V2: x", (None, None), 2),
        ("[PATCH 1 of 3] x", "x", (1, 3), 1),
        ("[v3,1/2] x", "x", (1, 2), 3),
        ("[PATCH rev2 1/2] x", "x", (1, 2), 2),
        ("[PATCH, take 2] x", "x", (None, None), 2),
        ("[PATCH 2nd try] x", "x", (None, None), 2),
        ("[PATCH #3] x", "x", (None, None), 3),
        ("[PATCH cgroup/for-6.20] x", "x", (None, None), 1),
        ("[EXTERNAL] [PATCH 1/2] x", "x", (1, 2), 1),
        ("x [PATCH 1/2]", "x [PATCH 1/2]", (None, None), 1),
        ("", "", (None, None), 1),
    ],
)
def test_a_subject_is_taken_apart(
    subject: str, title: str, number: tuple[int | None, int | None], version: int
) -> None:
    for text, reply in (
        (subject, False),
        (f"Re: RE: {subject}", True),
        (f"[EXT] Re: {subject}", True),
        *((f"{reply}: {subject}", True) for reply in ("Antwort", "R", "RES", "Odp", "YNT")),
        (f"Fwd: {subject}", False),
    ):
        found = read_subject(text)
        assert (found.title, (found.number, found.count), found.version) == (title, number, version)
        assert found.reply == reply


def test_the_message_id_becomes_a_trailer_once() -> None:
    headers = "Message-Id: <1.ada@example.org>\n"
    trailer = "Message-ID: <1.ada@example.org>\n"
    for body, end in (
        ("Why.\n\nAcked-by: B <b@example.org>", f"Acked-by: B <b@example.org>\n{trailer}"),
        ("Why.", f"Why.\n\n{trailer}"),
        ("", f"x\n\n{trailer}"),
        (
            "Link: https://lore.kernel.org/r/1.ada@example.org",
            "Link: https://lore.kernel.org/r/1.ada@example.org\n",
        ),
    ):
        patch = read(a_mail("[PATCH] x", f"{body}\n---\n{a_diff()}", headers=headers)).patches[0]
        assert commit_message(patch).endswith(end)


def test_a_description_without_headers_is_the_message_and_a_bare_diff_is_named_after_its_file() -> (
    None
):
    found = read(f"mm: take the lock\n\nIt was missing.\nIndex: x\n=====\n{a_diff()}").patches[0]
    assert (found.message, found.author) == ("mm: take the lock\n\nIt was missing.\n", "")
    only_from = read(f"From: Ada <ada@example.org>\n\nmm: y\n\nWhy.\n{a_diff()}").patches[0]
    assert (only_from.author, only_from.message) == ("Ada <ada@example.org>", "mm: y\n\nWhy.\n")
    assert subjects(read(a_diff(), "fix-lock.patch")) == ["fix-lock"]
    old = (
        "--- linux.orig/mm/memory.c\t2024-01-01\n+++ linux/mm/memory.c\t2024-01-02\n@@ -1 +1 "
        "@@\n-a\n+b\n"
    )
    assert read(f"Fix.\n{old}").patches[0].diff == old.encode()


# -- order


def numbered(*numbers: str, tag: str = "PATCH") -> list[bytes]:
    return [a_mail(f"[{tag} {n}] mm: {n}", f"Why.\n---\n{a_diff(new=n)}") for n in numbers]


def test_patches_are_sorted_by_number_wherever_the_mails_are() -> None:
    mails = numbered("3/3", "1/3", "2/3")
    assert subjects(read(b"".join(mails))) == ["mm: 1/3", "mm: 2/3", "mm: 3/3"]
    sources = [
        PatchSource(name=str(n), files=(PatchFile(name=str(n), data=mail),))
        for n, mail in enumerate(mails)
    ]
    assert subjects(read_series(sources)) == ["mm: 1/3", "mm: 2/3", "mm: 3/3"]


def test_two_mailboxes_apply_one_after_the_other_and_single_patches_between_them() -> None:
    first, second = (b"".join(numbered(*n)) for n in (("2/2", "1/2"), ("1/3", "3/3", "2/3")))
    data = [first, a_mail("[PATCH] fix", a_diff()), second]
    sources = [
        PatchSource(name=str(n), files=(PatchFile(name=str(n), data=each),))
        for n, each in enumerate(data)
    ]
    found = read_series(sources)
    assert subjects(found) == [f"mm: {n}" for n in ("1/2", "2/2")] + ["fix"] + [
        f"mm: {n}" for n in ("1/3", "2/3", "3/3")
    ]
    assert [patch.number for patch in found.patches] == [1, 2, 3, 4, 5, 6]


def test_patches_without_numbers_stay_in_the_order_of_the_mailbox() -> None:
    mails = [a_mail(f"[PATCH] {name}", a_diff(new=name)) for name in "cab"]
    assert subjects(read(b"".join(mails))) == ["c", "a", "b"]


def test_a_thread_has_its_patches_applied_and_the_rest_listed() -> None:
    answers = "In-Reply-To: <0@example.org>\n"
    thread = [
        a_mail("[PATCH v2 0/2] mm: both", f"Since v1:\n\n{a_diff(new='interdiff')}"),
        a_mail("Re: [PATCH v2 2/2] mm: 2/2", "> +b\n\nNo.", headers=answers),
        *numbered("2/2", "1/2", tag="PATCH v2"),
        a_mail("Re: [PATCH v2 1/2] mm: 1/2", f"Rather:\n\n{a_diff(new='c')}", headers=answers),
        a_mail("what about ARM?", "It breaks.", headers=answers),
    ]
    found = read(b"".join(thread))
    assert subjects(found) == ["mm: 1/2", "mm: 2/2"]
    assert [(letter.subject, letter.reason) for letter in found.left_out] == [
        ("[PATCH v2 0/2] mm: both", "cover letter"),
        ("Re: [PATCH v2 2/2] mm: 2/2", "reply"),
        ("Re: [PATCH v2 1/2] mm: 1/2", "reply; the diff in it is not applied"),
        ("what about ARM?", "reply"),
    ]


def test_a_reply_alone_that_has_a_diff_is_the_patch() -> None:
    assert subjects(read(a_mail("Re: a bug", f"Try this:\n\n{a_diff()}"))) == ["a bug"]


@pytest.mark.parametrize(
    ("mails", "sentence"),
    [
        (numbered("1/7", "2/7", "4/7", "5/7", "6/7", "7/7"), "patch 3/7 is missing"),
        (numbered("2/2"), "patch 1/2 is missing"),
        (numbered("20/20"), "1/20, 2/20, 3/20, .* and 9 more are missing"),
        (
            [*numbered("1/2", "2/2"), a_mail("[PATCH 2/2] y", a_diff(new="c"))],
            "patch 2/2 occurs 2 times",
        ),
        (numbered("1/2", "2/2") + numbered("1/3"), "several series .of 2 and 3 patches"),
        (numbered("1/2", "2/2", "4/2"), "patch 3/2 is missing"),
        (numbered("1/2", "2/2") + numbered("1/2", tag="PATCH v2"), "patches of v1 and v2"),
        (
            [*numbered("1/2", "2/2"), a_mail("[PATCH] x", a_diff())],
            "patches without a number: .PATCH. x by Ada",
        ),
        (
            [a_mail("[PATCH] x", a_diff()), a_mail("[PATCH v3] x", a_diff(new="c"))],
            "patches of v1 and v3",
        ),
        (
            [*numbered("1/2"), a_mail("[PATCH 2/2] y", "Why.\n")],
            r"patch 2/2 \(.PATCH 2/2. y\) has no diff",
        ),
    ],
)
def test_a_series_that_is_not_whole_says_what_is_wrong(mails: list[bytes], sentence: str) -> None:
    found = refusal(b"".join(mails))
    assert re.search(sentence, found) and found.startswith("f0: "), found


# -- what is refused


def parts(kind: str, text: str) -> str:
    return f"Content-Type: {kind}\nContent-Transfer-Encoding: {text}\n"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("", "f0: it has no diff"),
        ("no patch at all\n", "f0: it has no diff"),
        (a_mail("[PATCH 0/2] x", "Only the letter."), "no mail or file has a diff"),
        (a_diff().encode("utf-16"), "it is UTF-16 text"),
        (b"\x1f\x8b\x08\0\0", "NUL bytes"),
        (
            "diff --git a/x.bin b/x.bin\nindex 1..2 100644\nGIT binary patch\nliteral 3\n",
            "the patch of x.bin is binary",
        ),
        (
            (
                "diff --git a/x.bin b/x.bin\nindex 1..2 100644\nBinary files a/x.bin and "
                "b/x.bin differ\n"
            ),
            "the patch of x.bin is binary",
        ),
        (f"diff --cc x\n{a_diff()}", "combined diff of a merge"),
        ("--- a/x\n+++ b/x\n@@ -1,3 +1 @@\n-a\n", "the diff of x ends within a hunk"),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\nwrapped\n+b\n c\n",
            "the diff of x ends within a hunk",
        ),
        ("--- a/x\n+++ b/x\n@@ -1x @@\n-a\n", "the diff of x ends within a hunk"),
        (
            a_mail("[PATCH] x", a_diff(), headers='Content-Type: text/plain; format="flowed"\n'),
            "format=flowed",
        ),
        (
            a_mail("[PATCH] x", "begin 644 x\n#86(*\n", headers=parts("text/plain", "x-uuencode")),
            "no mail or file has a diff; left out: [PATCH] x by Ada",
        ),
        (a_mail("[PATCH] x", "AAA", headers=parts("text/plain", "base64")), "damaged base64"),
        (a_mail("[PATCH] x", "AAAA", headers=parts("text/plain", "base64")), "NUL bytes"),
        (
            a_mail("[PATCH 1/1] x", "<pre>+b</pre>", headers="Content-Type: text/html\n"),
            "it was sent as HTML",
        ),
        (
            a_mail("[PATCH] x", "<pre>+b</pre>", headers="Content-Type: text/html\n"),
            "(HTML, which is not read)",
        ),
        (
            a_mail("[PATCH] x", a_diff(), headers="Content-Type: multipart/mixed\n"),
            "no boundary between them",
        ),
        (a_mail("x" * 1001, a_diff()), "subject has 1001 characters"),
        (a_mail("x", "a " * 140_000 + f"\n---\n{a_diff()}"), "commit message has"),
        (a_mail("x", a_diff(), headers="X: y\n" * 2001), "more than 2000 header lines"),
        (a_mail("x" * 17_000, a_diff()), "the header Subject has 17000 bytes"),
        (
            "commit " + "a" * 40 + f"\nAuthor: A <a@b>\nDate: x\n\n    x\n\n{a_diff()}",
            "git format-patch",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused_in_a_sentence(data: bytes | str, sentence: str) -> None:
    assert sentence in refusal(data)


def test_limits_are_said_with_their_numbers() -> None:
    many = b"".join(a_mail(f"[PATCH] {n}", a_diff()) for n in range(limits.SERIES_PATCHES + 1))
    assert "more than 1000 patches" in refusal(many)
    assert "more than 5000 mails" in refusal(a_mail("x", "y") * 5001)
    half = b"+" * (limits.SERIES_BYTES // 2 + 1)
    assert "the patches have 32 MiB; the maximum is 32 MiB" in refusal(half, half)


def test_nothing_that_looks_like_a_binary_patch_gets_past_the_reader() -> None:
    """What git would read as one stands in a hunk, or is dropped with the notes."""
    sneaky = a_diff() + "\nnotes\nBinary files a and b differ\n"
    assert read(sneaky).patches[0].diff == a_diff().encode()
    inside = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+GIT binary patch\n"
    assert read(inside).patches[0].diff == inside.encode()
    assert "binary" in refusal(a_diff() + "GIT binary patch\nliteral 3\n")


def assert_sentence_or_series(data: bytes) -> tuple[SeriesPatch, ...]:
    """The patches; none where `data` is refused, in one sentence."""
    refused = "refused"
    patches: tuple[SeriesPatch, ...] = ()
    try:
        patches = read(data).patches
    except SeriesError as error:
        refused = str(error)
    assert refused and len(refused) < 1000 and "\n" not in refused
    return patches


BOUNDARY = "Content-Type: multipart/mixed; boundary={}\n"
HOSTILE: dict[str, Callable[[int], bytes]] = {
    "headers": lambda n: b"Subject: x\n" + b"A: b\n" * n,
    "one header": lambda n: b"Subject: " + b"x" * n + b"\n\n",
    "folded header": lambda n: b"Subject: x\n" + b" y\n" * n + b"\n",
    "encoded words": lambda n: (
        b"Subject: " + b"=?utf-8?q?x" * (n // 20) + b"\n\n" + a_diff().encode()
    ),
    "parameters": lambda n: b"Subject: x\nContent-Type: a/b;" + b';x="' * (n // 8) + b"\n\n",
    "from lines": lambda n: b"From a Thu Jan  1 00:00:00 1970\n" * n,
    "almost from lines": lambda n: b"From " + b"1:11 " * n + b"\n",
    "many almost from lines": lambda n: b"From 1:11 11\n" * n,
    "open brackets": lambda n: (
        b"Subject: " + b"[" * 15_000 + b"\n\n" + a_diff().encode() * (n // 90)
    ),
    "brackets": lambda n: b"Subject: " + b"[1]" * 5_000 + b"\n\n" + a_diff().encode(),
    "replies": lambda n: b"Subject: " + b"Re:" * 5_000 + b"\n\n" + a_diff().encode(),
    "deep parts": lambda n: (
        b"Subject: x\n"
        + b"".join(f"{BOUNDARY.format(d)}\n--{d}\n".encode() for d in range(n // 50))
    ),
    "same boundary": lambda n: (
        b"Subject: x\n" + BOUNDARY.format("b").encode() + b"\n" + b"--b\n" * n
    ),
    "mails in mails": lambda n: (
        b"Subject: x\n" + b"Content-Type: message/rfc822\n\nSubject: x\n" * (n // 40)
    ),
    "one line": lambda n: b"+" * n,
    "line ends": lambda n: b"\n" * n + a_diff().encode() + b"\n" * n,
    "carriage returns": lambda n: b"\r" * n + b"\r\n" * n,
    "hunk": lambda n: b"--- a/x\n+++ b/x\n@@ -1,999999999 +1,999999999 @@\n" + b" \n" * n,
    "hunks": lambda n: b"--- a/x\n+++ b/x\n" + b"@@ -0,0 +0,0 @@\n" * n,
    "file headers": lambda n: b"diff --git a/x b/x\n" * n + b"--- a/x\n" * n,
    "long header": lambda n: b"diff --git a/x b/x\n" + b"index 1\n" * n,
    "scissors": lambda n: b"Subject: x\n\n" + b"-- >8 --\n" * n + a_diff().encode(),
    "dashes": lambda n: b"Subject: x\n\n" + b"-" * n + b"\n" + b"-- \n" * n,
    "blank lines": lambda n: b"Subject: x\n\nFrom: a\n" + b"  \n" * n + a_diff().encode(),
    "in-body header": lambda n: b"Subject: x\n\nFrom: a\n" + b" b\n" * n + a_diff().encode(),
    "base64": lambda n: b"Subject: x\nContent-Transfer-Encoding: base64\n\n" + b"=" * n,
    "quoted": lambda n: b"Subject: x\nContent-Transfer-Encoding: quoted-printable\n\n" + b"=\n" * n,
    "punycode": lambda n: b"Subject: x\nContent-Type: text/plain; charset=punycode\n\n" + b"a" * n,
    "addresses": lambda n: b"From: " + b"<(" * 7000 + b"\n\n" + a_diff().encode(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_read_or_refused_within_seconds(name: str) -> None:
    """Hundreds of thousands of each: quadratic code takes minutes for them, this takes a second."""
    data = HOSTILE[name](300_000)
    start = time.process_time()
    assert_sentence_or_series(data)
    assert time.process_time() - start < 10


PIECES = [
    b"From a Thu Jan  1 00:00:00 1970\n", b"Subject: [PATCH 1/2] x\n", b"From: =?utf-8?b?w7Y=?= <a@b>\n",
    b"Content-Type: multipart/mixed; boundary=b\n", b"Content-Type: message/rfc822\n",
    b"Content-Type: text/plain; charset*0*=''x; format=flowed\n", b"--b\n", b"--b--\n", b"\n", b"---\n",
    b"Content-Disposition: attachment; filename*=utf-8''%ff.patch\n", b"Date: 31 Feb 99999 25:00 +9999\n",
    b"Content-Transfer-Encoding: base64\n", b"=?x?q?=ff?=", b"-- \n", b"-- >8 --\n", a_diff().encode(),
    b"GIT binary patch\n", b"\r\n", b"\xff\xfe", b"\x85", b"@@ -1 +1 @@\n", b"diff --git a/x b/x\n",
    b"rename from x\n", b"+++ b/x\n", b"--- a/x\n", b"Content-Type: text/plain; charset=\"a\\\"; x\n",
]  # fmt: skip


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=12), max_size=25))
def test_whatever_is_given_is_a_series_or_a_sentence(pieces: list[bytes]) -> None:
    for patch in assert_sentence_or_series(b"".join(pieces)):
        assert patch.subject == patch.message.split("\n")[0] and patch.diff.endswith(b"\n")
        assert b"\0" not in patch.diff and "\0" not in commit_message(patch)


# -- files and directories


def directory(path: Path, files: dict[str, bytes | str]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_a_quilt_directory_is_read_in_the_order_of_its_series_file(tmp_path: Path) -> None:
    series = "# my queue\n\nb.patch\nsub/a.diff -p1 # the second\n#c.patch\nd.patch -p 1\n"
    files: dict[str, bytes | str] = {
        "series": series,
        "b.patch": numbered("2/7")[0],
        "sub/a.diff": a_diff(new="x"),
        "c.patch": "not even a patch",
        "d.patch": f"mm: last\n\nWhy.\n{a_diff(new='y')}",
    }
    found = read_series(patch_sources([directory(tmp_path / "q", files)]))
    assert subjects(found) == ["mm: 2/7", "a", "mm: last"] and found.left_out == ()


@pytest.mark.parametrize(
    ("series", "sentence"),
    [
        ("a.patch -p0\n", "q/series: line 1: a.patch has the options '-p0'; only -p1 is supported"),
        ("\n a.patch -R\n", "line 2: a.patch has the options '-R'"),
        ("a.patch\nb.patch\n", "b.patch: not found in q"),
        ("a.patch\na.patch\n", "it names a.patch twice"),
        ("# nothing\n", "it names no patches"),
        ("../secret\n", "'../secret' is not a path within the directory"),
        ("/etc/passwd\n", "'/etc/passwd' is not a path within"),
        ("link.patch\n", "link.patch: not a regular file in q"),
        ("loop.patch\n", "loop.patch: not found in q"),
        ("sub\n", "sub: not a regular file"),
        ("words.patch\n", "words.patch: it has no diff"),
        ("letter.patch\n", "letter.patch: it has no diff; remove it from the `series` file"),
        ("x\n" * 20_001, "more than 20000 lines"),
        ("".join(f"{n}\n" for n in range(1001)), "more than 1000 patches"),
        ("a\0\n", "NUL bytes"),
    ],
)
def test_a_quilt_directory_that_cannot_be_applied_says_why(
    tmp_path: Path, series: str, sentence: str
) -> None:
    (tmp_path / "secret").write_text(a_diff())
    letter = a_mail("[PATCH 0/2] x", "y")
    files: dict[str, bytes | str] = {
        "series": series,
        "a.patch": a_diff(),
        "words.patch": "x",
        "letter.patch": letter,
    }
    place = directory(tmp_path / "q", {**files, "sub/x": ""})
    (place / "link.patch").symlink_to(tmp_path / "secret")
    (place / "loop.patch").symlink_to("loop.patch")
    with pytest.raises(SeriesError) as refused:
        read_series(patch_sources([place]))
    assert sentence in str(refused.value)


def test_a_series_file_of_many_names_is_read_in_linear_time() -> None:
    assert len(parse_series_file(b"".join(b"%d.patch\n" % n for n in range(1000)))) == 1000


def test_a_directory_of_patches_is_read_by_name_and_says_what_it_leaves_out(
    repo: Path, tmp_path: Path
) -> None:
    place = directory(tmp_path / "d", {"notes.txt": "x"})
    for number, mail in enumerate(numbered("2/2", "1/2")):
        (place / f"000{number}-x.patch").write_bytes(mail)
    (place / "0000-cover-letter.patch").write_bytes(a_mail("[PATCH 0/2] both", "Why."))
    found = read_series(patch_sources([place]))
    assert subjects(found) == ["mm: 1/2", "mm: 2/2"]
    assert [letter.subject for letter in found.left_out] == ["[PATCH 0/2] both", "notes.txt"]
    with pytest.raises(SeriesError, match=r"no `series` file and no .patch"):
        patch_sources([directory(tmp_path / "e", {"x.txt": ""})])


def test_more_bytes_than_a_series_may_have_are_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(limits.SERIES_BYTES * 100)
    with pytest.raises(SeriesError, match="huge: the patches exceed 32 MiB"):
        patch_sources([tmp_path / "huge"])
    with pytest.raises(SeriesError, match="gone: No such file"):
        patch_sources([tmp_path / "gone"])


def test_nothing_given_is_an_empty_series() -> None:
    assert read_series([]) == PatchSeries(patches=())
