"""Workers on other hosts: each has a secret that may change while the master runs, and the master
disconnects them before it stops.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from buildbot.interfaces import IRenderable
from buildbot.master import BuildMaster
from buildbot.worker import Worker
from twisted.internet import defer, task
from twisted.python import log
from twisted.web import pages
from zope.interface import implementer

from swingbot.adapters import worker_secrets
from swingbot.adapters.buildbot.deferred import deferred
from swingbot.adapters.part_heartbeat import PartHeartbeat
from swingbot_jobs.contract.heartbeat import BEAT_SECONDS, FILE

ASK_SECONDS: Final = 5.0
PART: Final = "buildbot-master"
LETTING_GO_SECONDS: Final = 5.0
# a build that never ends would keep Buildbot from stopping; the master loses nothing if it is
# killed
ENDING_SECONDS: Final = 20.0


def _give_up() -> None:
    log.msg(
        "swingbot: Buildbot does not stop; exiting anyway, running builds are retried after "
        "the next start"
    )
    os._exit(0)


@implementer(IRenderable)
class SecretFile:
    """The login secret of a worker, read at each login, so that a new secret needs no restart of
    the master.
    """

    def __init__(self, worker: str, file: Path) -> None:
        self._worker, self._file = worker, file

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretFile) and (self._worker, self._file) == (
            other._worker,
            other._file,
        )

    def __hash__(self) -> int:
        return hash((self._worker, self._file))

    def getRenderingFor(self, properties: Any) -> defer.Deferred[str]:
        try:
            return defer.succeed(worker_secrets.read(self._file))
        except worker_secrets.SecretError as error:
            log.msg(f"swingbot: worker {self._worker} cannot log in: {error}")
            return defer.fail(error)


class FleetWorker(Worker):  # type: ignore[misc]  # Buildbot is not typed
    """A worker whose secret is read at login; Buildbot would read it once, when it is
    configured.
    """

    def renderSecrets(self, *args: Any) -> defer.Deferred[Any]:
        return defer.succeed(args[0] if len(args) == 1 else list(args))


class AttachedWorkers:
    """Heartbeats of the workers that this master reaches: it asks each, and notes the answers.

    A worker that `swingbot up` runs writes its own.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._hearts: dict[str, PartHeartbeat] = {}
        self._asked: set[str] = set()

    def ask(self, connections: Mapping[str, Any]) -> None:
        """Ask the workers of these connections, and forget the others."""
        for name in set(self._hearts) - set(connections):
            self._hearts.pop(name).end()
            self._asked.discard(name)
        for name, connection in connections.items():
            if connection.mind is None or name in self._asked:
                continue  # it is leaving, or has not answered yet
            if (self._state / "workers" / name / FILE).exists():
                continue
            if name not in self._hearts:
                self._hearts[name] = PartHeartbeat(self._state, f"worker-{name}", reporter=PART)
                self._hearts[name].beat()  # it has just logged in
            heart = self._hearts[name]
            self._asked.add(name)
            answer = defer.maybeDeferred(connection.mind.callRemote, "getVersion")
            answer.addCallbacks(functools.partial(_beat, heart), lambda why: None)
            answer.addBoth(functools.partial(self._answered, name))

    def _answered(self, name: str, result: object) -> None:
        self._asked.discard(name)


def _beat(heart: PartHeartbeat, version: object) -> None:
    heart.beat()


class FleetMaster(BuildMaster):  # type: ignore[misc]
    """A master that disconnects its workers before it stops.

    At SIGTERM, Buildbot 4.3.0 ends running builds as cancelled, and they are not retried. A build
    that loses its worker is retried instead: it attaches to the work, which has continued in the
    meantime.
    """

    def __init__(self, basedir: str, config: str, state: str) -> None:
        super().__init__(basedir, config)
        self._heart = PartHeartbeat(Path(state), PART)
        self._beats: task.LoopingCall | None = None
        self._asks: task.LoopingCall | None = None
        self._attached = AttachedWorkers(Path(state))

    @deferred
    async def startService(self) -> None:
        self._beats = task.LoopingCall(self._heart.beat)
        self._beats.start(BEAT_SECONDS)
        self._asks = task.LoopingCall(lambda: self._attached.ask(self.workers.connections))
        self._asks.start(ASK_SECONDS, now=False)
        await self._services_d
        set_up = self.www.setupSite

        def without_events(config: Any) -> None:
            """Remove Buildbot's event stream /sse, which does not check roles; its pages use
            another stream, which does.
            """
            set_up(config)
            self.www.root.putChild(b"sse", pages.notFound())

        self.www.setupSite = without_events
        await super().startService()

    @deferred
    async def stopService(self) -> None:
        patience = self.reactor.callLater(ENDING_SECONDS, _give_up)
        if self.running:
            await self._let_go()
        await super().stopService()
        if patience.active():
            patience.cancel()
        for calls in (self._beats, self._asks):
            if calls is not None and calls.running:
                calls.stop()
        self._attached.ask({})
        self._heart.end()

    async def _let_go(self) -> None:
        for dispatcher in self.pbmanager.dispatchers.values():
            if dispatcher.port is not None:
                # a worker that reconnects now would find a half-stopped master
                await defer.maybeDeferred(dispatcher.port.stopListening)
        running = [
            build for builder in self.botmaster.builders.values() for build in builder.building
        ]
        for connection in list(self.workers.connections.values()):
            connection.loseConnection()
        if running:
            log.msg(
                f"swingbot: stopping; {len(running)} running builds are retried after the "
                "next start"
            )
            ended: defer.Deferred[Any] = defer.gatherResults(
                [build.waitUntilFinished() for build in running], consumeErrors=True
            )
            patience: defer.Deferred[Any] = task.deferLater(
                self.reactor, LETTING_GO_SECONDS, lambda: None
            )
            await defer.race([ended, patience])
