"""Progress of a table or bisection of a service elsewhere: streamed, and polled where no stream
comes through.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from typing import Final, cast

from swingbot.app.documents import Facts
from swingbot.app.remote.connection import Connection
from swingbot.core.model.answer_documents import ProgressOfARequest
from swingbot.core.model.lookup import NotFound
from swingbot.service.ports import RequestError

QUIET_SECONDS: Final = 40.0  # without a sign of life; the service gives one each 15 s
_PAUSE_SECONDS: Final = 1.0  # before it connects again, doubled each time
_LONGEST_PAUSE_SECONDS: Final = 60.0
_BARREN: Final = 3  # streams in a row without a line, as behind a proxy that buffers


class FollowedProgress:
    """`address` is that of the stream. The first `news` starts a thread that reads it."""

    def __init__(self, service: Connection, address: str) -> None:
        self._service, self._address = service, address
        self._events: queue.SimpleQueue[Facts] = queue.SimpleQueue()
        self._heard = float("-inf")  # when the stream gave its last sign of life
        self._reader: threading.Thread | None = None

    def now(self) -> Facts:
        """Ask for the progress. Raises what the methods of Connection raise."""
        return cast(Facts, self._service.json(ProgressOfARequest, f"{self._address}.json"))

    def news(self, seconds: float) -> Facts | None:
        """Return the progress as soon as it changed; after `seconds` None from a stream that works,
        else what the service answers then.
        """
        if self._reader is None:
            self._reader = threading.Thread(target=self._follow, name="progress", daemon=True)
            self._reader.start()
        try:
            return self._events.get(timeout=seconds)
        except queue.Empty:
            return None if time.monotonic() - self._heard < QUIET_SECONDS else self.now()

    def _follow(self) -> None:
        """Read one stream after the other, until it is over or `_BARREN` in a row bring nothing."""
        seen, pause, barren = "", _PAUSE_SECONDS, 0
        while barren < _BARREN:
            begun = time.monotonic()
            barren += 1
            try:
                for event in self._service.events(
                    ProgressOfARequest, self._address, seen, QUIET_SECONDS
                ):
                    self._heard, barren = time.monotonic(), 0
                    if event is not None:
                        seen, facts = event
                        self._events.put(facts)
                        if facts["over"]:
                            return
            except (NotFound, RequestError):
                return  # an answer to `now` says why
            except OSError:
                pass  # a service that is away, or what stands before it
            self._heard = float("-inf")
            if time.monotonic() - begun > QUIET_SECONDS:
                pause = _PAUSE_SECONDS
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
