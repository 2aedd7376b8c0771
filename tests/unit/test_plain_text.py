"""Text for mails: wrapped and cut between words, with addresses that a reader can use."""

from __future__ import annotations

import re

import pytest

from swingbot.core.text.plain import WIDTH, columns, cut, repository, wrap


@pytest.mark.parametrize(
    "number", ["32 / 768", "85 932", "1 085 932 kB", "-18.0 %", "7 / 10 000 %"]
)
def test_no_line_break_falls_into_a_number(number: str) -> None:
    for before in range(WIDTH):
        lines = wrap(f"{'x' * before} {number} and more words")
        assert any(number.removesuffix(" kB") in line for line in lines)
        assert all(columns(line) <= WIDTH and "\xa0" not in line for line in lines)


def test_strangers_digits_are_broken_like_any_long_word() -> None:
    lines = wrap("123 " * 200)
    assert all(len(line) <= WIDTH for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == "123" * 200


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("console=ttyS0 panic=-1 mitigations=off", 30, "console=ttyS0 panic=-1..."),
        ("console=ttyS0 panic=-1 mitigations=off", 26, "console=ttyS0 panic=-1..."),
        ("console=ttyS0 panic=-1", 22, "console=ttyS0 panic=-1"),
        ("a " + "x" * 40, 20, "a " + "x" * 15 + "..."),
        ("x" * 40, 20, "x" * 17 + "..."),
    ],
)
def test_a_long_line_is_cut_after_a_word(text: str, limit: int, shown: str) -> None:
    assert cut(text, limit) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("/root/.cache/linux.git", "a directory of swingbot's server"),
        ("file:///srv/linux.git", "a directory of swingbot's server"),
        ("https://git.example.org/linux.git", "https://git.example.org/linux.git"),
        ("git@example.org:linux.git", "git@example.org:linux.git"),
    ],
)
def test_a_path_of_the_server_is_no_address_for_a_reader(url: str, shown: str) -> None:
    assert repository(url) == shown
