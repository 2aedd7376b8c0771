"""Hand dispatches to Buildbot and record how they ended: a loop that compares swingbot's rows with
Buildbot's.

It keeps no state of its own. A dispatch becomes a buildset whose external id is that of the
dispatch; after a crash between placing and recording it, the buildset is found again. Completion is
judged by the build *request*, because a buildset can stay incomplete for ever after a crash. The
result of the work itself arrives separately (`web/workers/exchange.py`): Buildbot's result only
says whether the dispatch worked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from buildbot.data.resultspec import Filter
from buildbot.process.results import CANCELLED, FAILURE, RETRY, SKIPPED, SUCCESS, WARNINGS
from buildbot.util.service import BuildbotService
from twisted.python import log

from swingbot.adapters.buildbot import compiler_routing
from swingbot.adapters.buildbot.deferred import deferred
from swingbot.adapters.buildbot.passes import Notifications, Passes
from swingbot.adapters.buildbot.store import T, in_thread
from swingbot.core.model.dispatch import OpenDispatch
from swingbot.service.checkpoint import checkpoint
from swingbot.service.faults import in_a_line
from swingbot.service.ports.dispatches import Dispatches, DispatchResult
from swingbot.service.ports.transaction import OpenTransaction

# A host that repeatedly loses its worker would get the same request for ever.
BUILDS_PER_REQUEST = 4


WORDS: Mapping[int, DispatchResult] = {
    SUCCESS: "success",
    WARNINGS: "success",
    SKIPPED: "success",
    FAILURE: "failure",
    RETRY: "retry",
    CANCELLED: "cancelled",
}


def result_word(results: int | None) -> DispatchResult:
    """Return Buildbot's result code as the word that is stored; an unknown code is an exception."""
    return WORDS.get(-1 if results is None else results, "exception")


class Dispatcher(BuildbotService):  # type: ignore[misc]  # Buildbot is not typed
    """Reconciles all open dispatches when one changes and every `interval_seconds`, with the first
    pass at the start.
    """

    name = "swingbot-dispatcher"

    def checkConfig(
        self,
        begin: OpenTransaction,
        listen: Callable[[], Notifications],
        interval_seconds: float = 0.5,
    ) -> None:
        pass

    @deferred
    async def reconfigService(
        self,
        begin: OpenTransaction,
        listen: Callable[[], Notifications],
        interval_seconds: float = 0.5,
    ) -> None:
        self._begin, self._listen, self._interval = begin, listen, interval_seconds

    @deferred
    async def startService(self) -> None:
        await super().startService()
        self._problem: str | None = None
        self._stopped = False
        self._passes = Passes(
            self.master.reactor,
            self._pass,
            self._interval,
            self._listen,
            frozenset({"dispatch"}),
        )
        self._passes.start()

    @deferred
    async def stopService(self) -> None:
        self._stopped = True
        await self._passes.stop()
        await super().stopService()

    async def _pass(self) -> None:
        """Run one pass; a failure (such as an unreachable database) is logged once and retried in
        the next pass.
        """
        try:
            await self.reconcile()
            if self._problem is not None:
                log.msg("swingbot: dispatching works again")
            self._problem = None
        except Exception as error:
            words = in_a_line(error)
            if words != self._problem:
                log.msg(f"swingbot: dispatching failed, will try again: {words}")
            self._problem = words

    async def _stored(self, name: str, call: Callable[[Dispatches], T]) -> T:
        return await in_thread(self._begin, name, lambda tx: call(tx.dispatches))

    async def reconcile(self) -> None:
        """Advance every open dispatch by one step."""
        for dispatch in await self._stored("open dispatches", lambda stored: stored.open()):
            if self._stopped:
                return
            if dispatch.state == "wanted":
                await self._place(dispatch)
            else:
                await self._check(dispatch)

    async def _place(self, dispatch: OpenDispatch) -> None:
        placed = await self._find(dispatch)
        if placed is None and dispatch.cancelled:
            await self._close(dispatch, "cancelled")
            return
        if placed is None:
            checkpoint("dispatcher: before addBuildset")
            placed = await self._add(dispatch)
            checkpoint("dispatcher: after addBuildset")
        buildset, request = placed
        await self._stored(
            "dispatch placed", lambda stored: stored.place(dispatch.id, buildset, request)
        )

    async def _close(self, dispatch: OpenDispatch, result: DispatchResult) -> None:
        await self._stored("dispatch over", lambda stored: stored.close(dispatch.id, result))

    async def _find(self, dispatch: OpenDispatch) -> tuple[int, int] | None:
        """Return the buildset and request that were created for this dispatch before a crash; None
        if there are none.
        """
        buildsets = await self.master.data.get(
            ("buildsets",), filters=[Filter("external_idstring", "eq", [dispatch.external_id])]
        )
        for buildset in buildsets:
            requests = await self.master.data.get(
                ("buildrequests",), filters=[Filter("buildsetid", "eq", [buildset["bsid"]])]
            )
            if requests:
                return buildset["bsid"], requests[0]["buildrequestid"]
        return None

    async def _add(self, dispatch: OpenDispatch) -> tuple[int, int]:
        builder = await self.master.data.updates.findBuilderId(dispatch.builder)
        source = "swingbot"
        properties: dict[str, tuple[Any, str]] = {
            "swingbot_order": (f"o{dispatch.order}", source),
            "swingbot_attempt": (f"a{dispatch.attempt}", source),
            "swingbot_dispatch": (dispatch.external_id, source),
        }
        if dispatch.compiler is not None:
            properties[compiler_routing.PROPERTY] = (dispatch.compiler, source)
        buildset, requests = await self.master.data.updates.addBuildset(
            waited_for=False,
            scheduler="swingbot",
            sourcestamps=[
                {"codebase": "", "repository": "", "branch": None, "revision": None, "project": ""}
            ],
            reason=f"swingbot {dispatch.external_id}",
            properties=properties,
            builderids=[builder],
            external_idstring=dispatch.external_id,
            priority=dispatch.priority,
        )
        return buildset, requests[builder]

    async def _check(self, dispatch: OpenDispatch) -> None:
        request = await self.master.data.get(("buildrequests", dispatch.bb_request))
        if request is None:  # Buildbot's database was lost or cleared
            await self._close(dispatch, "exception")
            return
        builds = await self.master.data.get(("buildrequests", dispatch.bb_request, "builds"))
        last = max(builds, key=lambda build: build["buildid"], default=None)
        if last is not None and last["number"] != dispatch.bb_number:
            builder, number = last["builderid"], last["number"]
            await self._stored(
                "dispatch has build", lambda stored: stored.set_build(dispatch.id, builder, number)
            )
        if request["complete"]:
            results = (
                RETRY
                if request["results"] == CANCELLED and len(builds) >= BUILDS_PER_REQUEST
                else request["results"]
            )
            await self._close(dispatch, result_word(results))
        elif dispatch.cancelled:
            await self._cancel(dispatch, "no longer needed")
        elif len(builds) >= BUILDS_PER_REQUEST and last is not None and last["complete"]:
            await self._cancel(dispatch, f"abandoned after {len(builds)} builds with a lost worker")

    async def _cancel(self, dispatch: OpenDispatch, reason: str) -> None:
        checkpoint("dispatcher: before cancel")
        await self.master.data.control(
            "cancel", {"reason": reason}, ("buildrequests", dispatch.bb_request)
        )
        checkpoint("dispatcher: after cancel")
