"""Remember answers that never change, such as the difference between two commits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

REMEMBERED: Final = 500
REMEMBERED_BYTES: Final = 16 << 20
Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Remembered(Generic[Question, Answer]):
    """The latest REMEMBERED answers, for several threads: one of them asks, others wait for it.

    `size` gives the bytes of an answer; together they have at most REMEMBERED_BYTES.
    """

    def __init__(self, size: Callable[[Answer], int] = lambda answer: 0) -> None:
        self._size = size
        self._known: dict[Question, Answer] = {}
        self._asking: dict[Question, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, question: Question, ask: Callable[[], Answer]) -> Answer:
        """Return the known answer, or that of `ask`."""
        with self._lock:
            if question in self._known:
                return self._known[question]
            turn = self._asking.setdefault(question, threading.Lock())
        with turn:
            with self._lock:
                if question in self._known:
                    return self._known[question]
            try:
                answer = ask()
            finally:
                with self._lock:
                    self._asking.pop(question, None)
            with self._lock:
                self._remember(question, answer)
        return answer

    def _remember(self, question: Question, answer: Answer) -> None:
        self._known[question] = answer
        while len(self._known) > REMEMBERED or (
            sum(map(self._size, self._known.values())) > REMEMBERED_BYTES
        ):
            del self._known[next(iter(self._known))]
