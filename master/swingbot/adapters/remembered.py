"""Remember answers that never change, such as the difference between two commits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

REMEMBERED: Final = 500
Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Remembered(Generic[Question, Answer]):
    """The latest REMEMBERED answers, for several threads."""

    def __init__(self) -> None:
        self._known: dict[Question, Answer] = {}
        self._lock = threading.Lock()

    def get(self, question: Question, ask: Callable[[], Answer]) -> Answer:
        """Return the known answer, or that of `ask`."""
        with self._lock:
            if question in self._known:
                return self._known[question]
        answer = ask()
        with self._lock:
            self._known[question] = answer
            if len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
        return answer
