"""Patches of strangers are read in a child: the same series and sentences, within limits."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import pytest

from swingbot.adapters import limits, maildir, process
from swingbot.adapters.limited_reader import ReaderProcess
from swingbot.adapters.mail_reader import TOGETHER, mail_reader, read_patches, spooled
from swingbot.adapters.maildir import DeliveredMails, MaildirArchive, deliver, letters
from swingbot.core.patchset.model import SeriesError
from swingbot.core.patchset.read import one_file, read_file
from swingbot.core.patchset.touched import touched_files
from swingbot.service.ports.results import Unreadable
from tests.patch_series import a_diff, a_mail
from tests.unit.test_patch_threads import Thread, fix_of_a_series, one_more, series

LONG = a_mail("x", "--- a/x\n+++ b/x\n@@ -1,300000 +1,300000 @@\n" + " x\n" * 300_000)


def _question(data: bytes) -> dict[str, Any]:
    source = {"name": "x", "files": [["x", len(data)]], "ordered": False, "ignored": []}
    return {"read": "series", "sources": [source], "stack": False}


def test_the_child_returns_what_the_reader_reads() -> None:
    odd = a_mail("[PATCH] ö 1/2", f"Größe.\n\n{a_diff(new='ö')}").decode().encode("latin-1")
    for shape in (series, fix_of_a_series, one_more):
        thread = Thread(random.Random(7))
        shape(thread)
        assert read_patches([one_file("x", thread.data())]) == read_file("x", thread.data())
    for data in (odd, LONG):
        assert read_patches([one_file("x", data)]) == read_file("x", data)
    (patch,) = read_patches([one_file("x", a_mail("x", a_diff("mm/é.c")))]).patches
    assert patch.touched == tuple(touched_files(patch.diff))
    part = a_mail("[PATCH 1/2] x", a_diff())
    assert read_patches([one_file("x", part)], stack=True) == read_file("x", part, stack=True)


@pytest.mark.parametrize("data", [b"", b"\0", a_mail("[PATCH 1/2] x", a_diff())])
def test_the_child_refuses_what_the_reader_refuses(data: bytes) -> None:
    with pytest.raises(SeriesError) as refused:
        read_file("x", data)
    with pytest.raises(SeriesError) as refused_there:
        read_patches([one_file("x", data)])
    assert str(refused.value) == str(refused_there.value)


@pytest.mark.parametrize(
    ("memory_bytes", "seconds", "why"),
    [(16 << 20, 60.0, "needs too much memory"), (1 << 30, 0.01, "took longer than 0 s")],
)
def test_patches_beyond_a_limit_are_refused_with_it(
    monkeypatch: pytest.MonkeyPatch, memory_bytes: int, seconds: float, why: str
) -> None:
    monkeypatch.setattr(limits, "MAIL_READER_BYTES", memory_bytes)
    monkeypatch.setattr(limits, "MAIL_READER_SECONDS", seconds)
    with pytest.raises(SeriesError, match=f"^x: reading them {why}"):
        read_patches([one_file("x", LONG)])


def test_a_mail_beyond_a_limit_is_shown_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = deliver(tmp_path, b"Subject: x\n\n" + b"x\n" * (400 << 10))
    mails = DeliveredMails(tmp_path)
    whole, (listed,) = mails.mail(path.name), mails.newest(10)[0]
    assert whole is not None and whole["text"].startswith("x\nx")
    assert listed["subject"] == whole["subject"] == "x"
    monkeypatch.setattr(limits, "MAIL_READER_BYTES", 0)
    assert mails.mail(path.name) == whole, "what was read once is not read again"
    refused = DeliveredMails(tmp_path).mail(path.name)
    assert refused is not None and "needs too much memory" in refused["text"]
    assert (refused["key"], refused.get("subject")) == (path.name, None)


def test_a_large_mailbox_is_read_in_pieces_whatever_is_moved_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mails = [b"Subject: %d\n\nx\n" % number for number in range(2 * TOGETHER + 1)]
    paths = [deliver(tmp_path, mail) for mail in mails]
    asked: list[int] = []
    ask = ReaderProcess.ask

    def noted(reader: ReaderProcess, request: Mapping[str, Any], file: IO[bytes]) -> dict[str, Any]:
        asked.append(len(request["sizes"]))
        return ask(reader, request, file)

    monkeypatch.setattr(ReaderProcess, "ask", noted)
    read = {mail.path: mail.subject for mail in letters(tmp_path)}
    assert read == {path: str(number) for number, path in enumerate(paths)}
    assert asked == [TOGETHER, TOGETHER, 1]

    paths[0].unlink()  # after a page has listed the files
    monkeypatch.setattr(maildir, "files", lambda _: iter(paths))
    delivered = DeliveredMails(tmp_path)
    listed, count = delivered.newest(1000)
    assert count == len(listed) == 2 * TOGETHER
    assert all(mail["size"] == len(mails[int(mail["subject"])]) for mail in listed)
    assert delivered.mail(paths[0].name) is None


def test_a_mail_that_was_read_starts_no_child_even_if_it_was_moved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = deliver(tmp_path, b"Message-ID: <1@x>\nSubject: 1\n\nx\n")
    delivered, archive = DeliveredMails(tmp_path), MaildirArchive(path=tmp_path, authoritative=True)

    def answers() -> list[object]:
        key = first.name
        listed, mail = delivered.newest(10)[0], delivered.mail(key)
        return [listed, mail, archive.holds("<1@x>"), archive.holds("<2@x>")]

    once, started = answers(), list[object]()
    first.rename(tmp_path / "cur" / f"{first.name}:2,S")
    child = process.Child

    def noted(*given: Any, **more: Any) -> process.Child:
        started.append(given)
        return child(*given, **more)

    monkeypatch.setattr(process, "Child", noted)
    assert answers() == once
    assert started == []
    deliver(tmp_path, b"Message-ID: <2@x>\nSubject: 2\n\nx\n")
    assert [mail["subject"] for mail in delivered.newest(10)[0]] == ["2", "1"]
    assert archive.holds("<2@x>")
    assert len(started) == 2


def test_the_thread_that_asks_pays_for_a_child_that_lives_on() -> None:
    with mail_reader() as reader, spooled([LONG]) as file:
        took = []
        for _ in range(2):
            begun, own = process.seconds(), time.thread_time()
            reader.ask(_question(LONG), file)
            took.append(process.seconds() - begun - (time.thread_time() - own))
            file.seek(0)
        before = process.seconds()
    assert min(took) > 0.01, "the child works for some 0.2 s for each"
    assert process.seconds() - before < 0.1, "nothing is counted twice"


def test_an_answer_that_is_too_long_is_not_taken() -> None:
    mail = a_mail("[PATCH] x", a_diff())
    with (
        mail_reader(len(a_diff())) as reader,
        spooled([mail]) as file,
        pytest.raises(Unreadable, match="was read from them"),
    ):
        reader.ask(_question(mail), file)
