"""Route kernel builds to workers that have the compiler, as announced at each login and checked
before each build.

Buildbot 4.3.0 offers a request to each free worker of its builder in turn, calls `canStartBuild`,
and postpones a request that no worker may take without delaying those behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from buildbot.process.builder import Builder
from twisted.internet import defer, task
from twisted.python import log

from swingbot.adapters.buildbot.deferred import deferred
from swingbot.adapters.buildbot.fleet import FleetWorker
from swingbot.adapters.buildbot.store import in_thread
from swingbot.core.model.records import WorkerCompiler
from swingbot.core.plan.kernel_queue import may_build, may_retry
from swingbot.service.faults import in_a_line
from swingbot.service.ports.transaction import OpenTransaction
from swingbot_jobs.contract.compiler import (
    ANNOUNCEMENT,
    BadAnnouncement,
    Compiler,
    from_announcement,
)

PROPERTY: Final = "swingbot_compiler"  # property of a build request: the compiler of the kernel
AGAIN_SECONDS: Final = 5.0
REMEMBERED_ORDERS: Final = 1000
TRIES: Final = 6  # to store an announcement while the database is unreachable


class CompilerAnnouncements:
    """Where announcements are stored.

    All instances compare equal, because Buildbot reconfigures a worker whenever an argument
    differs.
    """

    def __init__(self, begin: OpenTransaction) -> None:
        self.begin = begin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompilerAnnouncements)

    def __hash__(self) -> int:
        return hash(CompilerAnnouncements)


class BuildWorker(FleetWorker):
    """A build worker. Its compilers are stored before it gets a build."""

    def checkConfig(
        self, name: str, password: Any, announced: CompilerAnnouncements, **rest: Any
    ) -> Any:
        return super().checkConfig(name, password, **rest)

    @deferred
    async def reconfigService(
        self, name: str, password: Any, announced: CompilerAnnouncements, **rest: Any
    ) -> None:
        self._announced = announced
        await super().reconfigService(name, password, **rest)

    @deferred
    async def attached(self, conn: Any) -> None:
        await self._store_compilers(_compilers_of(self.name, conn.info.get(ANNOUNCEMENT)))
        await super().attached(conn)

    async def _store_compilers(self, compilers: list[Compiler]) -> None:
        for _ in range(TRIES):
            try:
                await in_thread(
                    self._announced.begin,
                    "compilers announced",
                    lambda tx: tx.compilers.announce(self.name, compilers),
                )
                return
            except Exception as error:
                log.msg(f"swingbot: compilers of {self.name} not stored yet: {in_a_line(error)}")
            await task.deferLater(self.master.reactor, AGAIN_SECONDS, lambda: None)
        log.msg(f"swingbot: compilers of {self.name} not stored; restart the worker to try again")


def _compilers_of(worker: str, text: object) -> list[Compiler]:
    """Return the compilers that a worker announced; empty if the announcement is missing or
    unreadable.
    """
    if text is None:
        log.msg(f"swingbot: worker {worker} announced no compilers; upgrade it")
        return []
    try:
        return from_announcement(str(text))
    except BadAnnouncement as error:
        log.msg(f"swingbot: worker {worker} announced compilers in an invalid format: {error}")
        return []


def routing(begin: OpenTransaction) -> Callable[[Builder, Any, Any], defer.Deferred[bool]]:
    """Return Buildbot's `canStartBuild` for the builder of kernels.

    It remembers which worker tried which attempt of an order, so that a retry goes to another one.
    """
    tried: dict[str, dict[str, str]] = defaultdict(dict)  # order -> worker -> attempt

    @deferred
    async def can_start(builder: Builder, candidate: Any, request: Any) -> bool:
        compiler = request.properties.getProperty(PROPERTY)
        if compiler is None:  # dispatched by a version without routing
            return True
        try:
            announced = _by_worker(
                await in_thread(begin, "compilers", lambda tx: tx.compilers.all())
            )
        except Exception as error:
            log.msg(f"swingbot: routing of a kernel build waits: {in_a_line(error)}")
            builder.master.reactor.callLater(
                AGAIN_SECONDS, builder.botmaster.maybeStartBuildsForBuilder, builder.name
            )
            return False
        order, attempt = (
            str(request.properties.getProperty(name))
            for name in ("swingbot_order", "swingbot_attempt")
        )
        working = (one.worker for one in builder.workers if not one.worker.isPaused())
        attached = [one.workername for one in working]
        able = [name for name in attached if may_build(announced, name, compiler)]
        earlier = {name for name, made in tried[order].items() if made != attempt}
        worker = candidate.worker.workername
        if worker not in able or not may_retry(worker, earlier, able):
            return False
        if len(tried) > REMEMBERED_ORDERS:
            tried.clear()
        tried[order][worker] = attempt
        return True

    return can_start


def _by_worker(announced: Sequence[WorkerCompiler]) -> Mapping[str, Sequence[WorkerCompiler]]:
    lists: dict[str, list[WorkerCompiler]] = defaultdict(list)
    for one in announced:
        lists[one.worker].append(one)
    return lists
