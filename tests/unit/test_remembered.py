"""Answers are remembered: each question is asked once, and the memory for them has a limit."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from swingbot.adapters.remembered import REMEMBERED_BYTES, Remembered


def test_concurrent_callers_wait_for_one_answer() -> None:
    remembered: Remembered[str, int] = Remembered()
    asked: list[str] = []
    end = threading.Event()

    def ask() -> int:
        asked.append("x")
        end.wait(60)
        return 7

    with ThreadPoolExecutor() as threads:
        answers = [threads.submit(remembered.get, "x", ask) for _ in range(4)]
        assert remembered.get("y", lambda: 8) == 8
        end.set()
        assert [answer.result() for answer in answers] == [7] * 4
    assert asked == ["x"]


def test_an_error_is_not_remembered() -> None:
    remembered: Remembered[str, int] = Remembered()
    with pytest.raises(ZeroDivisionError):
        remembered.get("x", lambda: 1 // 0)
    assert remembered.get("x", lambda: 7) == 7


def test_the_answers_have_a_limit_of_bytes_together() -> None:
    remembered: Remembered[int, bytes] = Remembered(len)
    piece = REMEMBERED_BYTES // 4
    for number in range(5):
        remembered.get(number, lambda: bytes(piece))
    assert [remembered.get(number, lambda: b"again") == b"again" for number in (4, 3, 2, 1, 0)] == [
        *([False] * 4),
        True,
    ]
