"""The mail in which a patch was posted, in archives of four formats and in broken ones."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from swingbot.adapters.list_archive import find_posted
from swingbot.adapters.maildir import deliver
from swingbot.core.mail.message import PostedMail
from swingbot.core.mail.posting import is_posting

AUTHOR = "Jörg Beispiel <joerg@example.org>"


def a_mail(number: int, subject: str, *, sender: str = AUTHOR, references: str = "") -> bytes:
    more = f"References: {references}\n" if references else ""
    return (
        f"From: {sender}\nMessage-ID: <{number}@example.org>\nSubject: {subject}\n{more}\n"
        f"body\n\nFrom: in the body\n"
    ).encode()


MAILS = [
    a_mail(1, "[PATCH 0/2] mm: a cover letter"),
    a_mail(2, "[PATCH 1/2] mm: shrink the\n  page cache", references="<1@example.org>"),
    a_mail(
        3,
        "Re: [PATCH 1/2] mm: shrink the page cache",
        sender="Ada <ada@example.org>",
        references="<1@example.org> <2@example.org>",
    ),
    a_mail(4, "[PATCH v2 1/2] mm: shrink the page cache", references="<0@example.org>"),
    a_mail(5, "=?utf-8?q?[PATCH]_mm=3A_gr=C3=BC=C3=9Fe?="),
    a_mail(6, "[PATCH] mm: shrink the page cache", sender="Mallory <mallory@example.org>"),
]


def maildir(place: Path) -> Path:
    for mail in MAILS:
        deliver(place / "maildir", mail)
    return place / "maildir"


def mbox(place: Path) -> Path:
    (place / "lists.mbox").write_bytes(
        b"".join(b"From mboxrd@z Thu Jan  1 00:00:00 1970\n" + mail + b"\n" for mail in MAILS)
    )
    return place / "lists.mbox"


def directory(place: Path) -> Path:
    (place / "boxes").mkdir()
    mbox(place / "boxes")
    return place / "boxes"


def public_inbox(place: Path) -> Path:
    """Version 2: an epoch of git in which each commit is a mail, in the file `m`, with its
    subject and sender."""
    epoch = place / "inbox/git/0.git"
    tree = place / "work"
    tree.mkdir(parents=True)

    def git(*arguments: str, **more: str) -> None:
        subprocess.run(
            ["git", "-C", str(tree), *arguments],
            check=True,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(place), **more},
        )

    git("init", "-q")
    for mail in MAILS:
        (tree / "m").write_bytes(mail)
        head = mail.decode().split("\n\n")[0].replace("\n  ", " ")
        headers = dict(line.split(": ", 1) for line in head.split("\n"))
        name, _, address = headers["From"].rpartition(" <")
        git("add", "m")
        git(
            *("commit", "-q", "-m", headers["Subject"]),
            GIT_AUTHOR_NAME=name,
            GIT_AUTHOR_EMAIL=address.rstrip(">"),
            GIT_COMMITTER_NAME="i",
            GIT_COMMITTER_EMAIL="i@example.org",
        )
    epoch.parent.mkdir(parents=True)
    git("clone", "-q", "--bare", str(tree), str(epoch))
    return place / "inbox"


archives = pytest.mark.parametrize("archive", [maildir, mbox, directory, public_inbox])


@archives
def test_a_trailers_mail_is_found_with_its_subject_and_references(
    archive: Callable[[Path], Path], tmp_path: Path
) -> None:
    place = archive(tmp_path)
    found = find_posted(place, "<2@example.org>", "mm: shrink the page cache", AUTHOR)
    assert found == PostedMail(
        message_id="<2@example.org>",
        subject="[PATCH 1/2] mm: shrink the page cache",
        references=("<1@example.org>",),
    )


@archives
def test_without_a_trailer_the_latest_version_by_its_author_is_found(
    archive: Callable[[Path], Path], tmp_path: Path
) -> None:
    place = archive(tmp_path)
    found = find_posted(place, "", "mm: shrink the page cache", AUTHOR)
    assert found is not None and found.message_id == "<4@example.org>"
    assert find_posted(place, "", "mm: another thing", AUTHOR) is None


def test_encoded_subjects_are_read(tmp_path: Path) -> None:
    found = find_posted(maildir(tmp_path), "", "mm: grüße", AUTHOR)
    assert found is not None and found.subject == "[PATCH] mm: grüße"


@pytest.mark.parametrize(
    ("subject", "sender", "same"),
    [
        ("[PATCH] mm: x", AUTHOR, True),
        ("[RFC PATCH v3 12/34] MM:  x", "joerg@example.org", True),
        ("[mm][PATCH] mm: x", AUTHOR, False),
        ("[PATCH][mm] mm: x", AUTHOR, True),
        ("Re: [PATCH] mm: x", AUTHOR, False),
        ("mm: x", AUTHOR, False),
        ("[PATCH] mm: x", "Ada <ada@example.org>", False),
        ("[PATCH] mm: xy", AUTHOR, False),
        ("[PATCH] mm: x", "unknown", False),
    ],
)
def test_a_posting_has_the_patchs_subject_and_its_authors_address(
    subject: str, sender: str, same: bool
) -> None:
    assert is_posting(subject, sender, "mm: x", AUTHOR) is same


def test_an_archive_that_is_no_good_has_nothing_and_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / "rubbish").write_bytes(
        b"From \nSubject: \xff\xfe =?utf-8?b?////?=\nMessage-ID: <x\r\n y>\n\n" + b"From " * 100_000
    )
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "missing", tmp_path / "rubbish", tmp_path / "empty"):
        assert find_posted(place, "<1@example.org>", "mm: x", AUTHOR) is None
        assert find_posted(place, "", "mm: x\r\nBcc: y", "-" * 10_000) is None


def test_long_headers_of_an_archive_take_no_time(tmp_path: Path) -> None:
    """Decoded whole, they held the loop for 7 s."""
    mails = (a_mail(number, "=?a?q? " * 9000) for number in range(1, 4))
    (tmp_path / "box").write_bytes(
        b"".join(b"From m@z Thu Jan  1 00:00:00 1970\n" + mail + b"\n" for mail in mails)
    )
    start = time.process_time()
    assert find_posted(tmp_path / "box", "", "mm: x", AUTHOR) is None
    assert find_posted(tmp_path / "box", "<2@example.org>", "mm: x", AUTHOR) is None
    assert time.process_time() - start < 1


def test_searching_ends_when_its_time_is_over(tmp_path: Path) -> None:
    assert (
        find_posted(
            public_inbox(tmp_path),
            "<2@example.org>",
            "mm: shrink the page cache",
            AUTHOR,
            seconds=0,
        )
        is None
    )
