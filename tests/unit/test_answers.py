"""Answers about files of this host are kept as long as the files are the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from swingbot_worker import answers
from swingbot_worker.answers import Answers


def saying(answer: str, asked: list[str] | None = None) -> Callable[[], str]:
    """A question that has this answer; `asked` notes each time."""

    def ask() -> str:
        if asked is not None:
            asked.append(answer)
        return answer

    return ask


def is_text(answer: object) -> bool:
    return isinstance(answer, str)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose last change counts as long ago."""
    monkeypatch.setattr(answers, "_SETTLED_NS", 0)
    path = tmp_path / "file"
    path.write_text("one\n")
    return path


def test_a_command_runs_again_only_after_a_file_has_changed(file: Path, tmp_path: Path) -> None:
    kept, log = Answers(tmp_path / "cache"), tmp_path / "log"
    count = ["sh", "-c", f"echo ran >>{log}; cat {file}"]
    assert [kept.of_command(count, [file]).text for _ in range(3)] == ["one\n"] * 3
    assert log.read_text() == "ran\n"
    before = file.stat()
    file.write_text("two\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as a copy that keeps times
    assert kept.of_command(count, [file]).text == "two\n"
    file.unlink()
    assert kept.of_command(count, [file]).rc != 0
    assert log.read_text() == "ran\n" * 3


def test_a_failure_is_asked_again(file: Path, tmp_path: Path) -> None:
    kept, flag = Answers(tmp_path / "cache"), tmp_path / "flag"
    argv = ["sh", "-c", f"[ -e {flag} ] && echo well"]
    assert kept.of_command(argv, [file]).rc == 1
    flag.touch()
    assert kept.of_command(argv, [file]).text == "well\n"


def test_another_question_about_the_same_file_has_its_own_answer(
    file: Path, tmp_path: Path
) -> None:
    kept = Answers(tmp_path / "cache")
    assert [kept.of([name], [file], saying(name), is_text) for name in ("a", "b", "a")] == [
        "a",
        "b",
        "a",
    ]


def test_a_file_that_has_just_changed_gives_no_answer_to_keep(tmp_path: Path) -> None:
    # within one tick of the file system's clock it could change again and look the same
    path = tmp_path / "file"
    asked: list[str] = []
    path.write_text("one\n")
    for _ in range(2):
        Answers(tmp_path / "cache").of(["q"], [path], saying("answer", asked), is_text)
    assert len(asked) == 2


def test_a_file_that_changes_during_the_question_gives_no_answer_to_keep(
    file: Path, tmp_path: Path
) -> None:
    kept = Answers(tmp_path / "cache")
    assert kept.of(["q"], [file], lambda: str(file.write_text("three\n")), is_text) == "6"
    file.write_text("one\n")
    assert kept.of(["q"], [file], saying("asked"), is_text) == "asked"
    assert not any("6" in entry.read_text() for entry in (tmp_path / "cache" / "answers").iterdir())


def test_a_damaged_entry_is_asked_again(file: Path, tmp_path: Path) -> None:
    kept = Answers(tmp_path / "cache")
    assert kept.of(["q"], [file], saying("first"), is_text) == "first"
    [entry] = (tmp_path / "cache" / "answers").iterdir()
    for text in ("", "[]", '{"answer', '{"answer": ["of another version"]}'):
        entry.write_text(text)
        assert kept.of(["q"], [file], saying(f"after {text}"), is_text) == f"after {text}"


def test_only_the_answers_used_last_are_kept(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "KEPT", 3)
    kept = Answers(tmp_path / "cache")
    for number in range(6):
        kept.of([str(number)], [file], saying("answer"), is_text)
    assert len(list((tmp_path / "cache" / "answers").iterdir())) == 3


def test_the_answer_of_a_command_of_another_version_is_asked_again(
    file: Path, tmp_path: Path
) -> None:
    kept = Answers(tmp_path / "cache")
    assert kept.of_command(["cat", file], [file]).text == "one\n"
    [entry] = (tmp_path / "cache" / "answers").iterdir()
    for old in ('"text"', "[0]", '["0", "text"]', "null"):
        entry.write_text(f'{{"answer": {old}}}')
        assert kept.of_command(["cat", file], [file]).text == "one\n"
