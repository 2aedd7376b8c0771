"""Repeat a piece of work at an interval, and at once when the database reports a change."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from twisted.internet import defer, interfaces, task, threads
from twisted.python import log
from zope.interface import implementer

from swingbot.adapters.buildbot.deferred import deferred
from swingbot.service.faults import in_a_line

_GAP_SECONDS = 0.05  # between two passes: every role of the database may notify


class Notifications(Protocol):
    """Implemented by `swingbot_db.listener.Listener`."""

    def fileno(self) -> int: ...
    def heard(self) -> set[str]: ...
    def close(self) -> None: ...


class Passes:
    """Runs `work` every `interval_seconds`, and soon after a change of one of `tables`.

    Never two passes run at a time; a change during one causes another. `listen` opens a session
    for the notifications and may block. While there is none, the interval alone counts.
    """

    def __init__(
        self,
        reactor: Any,
        work: Callable[[], Coroutine[Any, Any, None]],
        interval_seconds: float,
        listen: Callable[[], Notifications],
        tables: frozenset[str],
    ) -> None:
        self._reactor, self._work, self._listen, self._tables = reactor, work, listen, tables
        self._interval = interval_seconds
        self._session: _SessionReader | None = None
        self._running: defer.Deferred[None] | None = None
        self._again = self._stopped = False
        self._problem: str | None = None

    def start(self) -> None:
        """Run the first pass now."""
        self._loop = task.LoopingCall(self._timed)
        self._loop.clock = self._reactor
        self._ended = self._loop.start(self._interval, now=True)

    async def stop(self) -> None:
        """Start no more passes, and wait for the one that is running."""
        self._stopped = True
        if self._loop.running:
            self._loop.stop()
            await self._ended
        if self._running is not None:
            await self._running
        self._close_session()

    @deferred
    async def _timed(self) -> None:
        if self._session is None:
            await self._open_session()
        if self._running is None:
            await self._run()

    async def _open_session(self) -> None:
        try:
            reader = _SessionReader(await threads.deferToThread(self._listen), self._hear)
        except Exception as error:
            self._report(error)
            return
        if self._stopped:
            reader.end()
            return
        self._session, self._problem = reader, None
        self._reactor.addReader(reader)

    def _hear(self, session: Notifications) -> None:
        """Handle a readable session: a notification, or the end of the session."""
        try:
            changed = session.heard()
        except Exception as error:
            self._report(error)
            self._close_session()
            return
        if self._tables.isdisjoint(changed) or self._stopped:
            return
        if self._running is not None:
            self._again = True
        else:
            self._run()

    @deferred
    async def _run(self) -> None:
        over: defer.Deferred[None] = defer.Deferred()
        self._running = over
        try:
            while True:
                self._again = False
                await self._work()
                await task.deferLater(self._reactor, _GAP_SECONDS, lambda: None)
                if not self._again or self._stopped:
                    break
        finally:
            self._running = None
            over.callback(None)

    def _close_session(self) -> None:
        if self._session is not None:
            self._reactor.removeReader(self._session)
            self._session.end()
            self._session = None

    def _report(self, error: Exception) -> None:
        words = in_a_line(error)
        if words != self._problem:
            log.msg(f"swingbot: no notifications from the database, polling instead: {words}")
        self._problem = words


@implementer(interfaces.IReadDescriptor)
class _SessionReader:
    """The session as the reactor reads it."""

    def __init__(self, session: Notifications, hear: Callable[[Notifications], None]) -> None:
        self.session, self._hear = session, hear
        # A descriptor of our own: libpq closes its own when the server goes, before the reactor
        # can forget it.
        self._number = os.dup(session.fileno())

    def end(self) -> None:
        os.close(self._number)
        self.session.close()

    def fileno(self) -> int:
        return self._number

    def doRead(self) -> None:
        self._hear(self.session)

    def connectionLost(self, reason: Any) -> None:
        self._hear(self.session)

    def logPrefix(self) -> str:
        return "swingbot"
