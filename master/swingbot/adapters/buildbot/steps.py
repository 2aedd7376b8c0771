"""The two steps of every build: send the order to the worker, and run `swingbot-worker attempt`
there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from buildbot.plugins import steps
from buildbot.process.build import Build
from buildbot.process.factory import BuildFactory
from buildbot.process.results import FAILURE, RETRY, SKIPPED
from twisted.internet import threads
from twisted.python import log

from swingbot.adapters.buildbot.deferred import deferred

# Relative to a build's directory: the attempts of a worker outlive its builds and are shared by its
# builders.
ATTEMPTS_STATE = "../../state"
# The executor ends itself, hashes and uploads. After that the build is abandoned (the executor is
# not).
MARGIN_SECONDS = 600

OrderText = Callable[[int], "dict[str, Any] | None"]


class DownloadOrder(steps.StringDownload):  # type: ignore[misc]  # Buildbot is not typed
    """Writes order.json on the worker.

    It is generated when the step runs and contains the attempt's token, so it appears in no log and
    no property.
    """

    name = "order"

    def __init__(self, make_order: OrderText, pages: str, **kwargs: Any) -> None:
        super().__init__("", workerdest="order.json", mode=0o600, **kwargs)
        self._make_order, self._pages = make_order, pages

    @deferred
    async def run(self) -> int:
        attempt = int(str(self.getProperty("swingbot_attempt")).removeprefix("a"))
        try:
            document = await threads.deferToThread(self._make_order, attempt)
        except ValueError as error:
            await self.addCompleteLog("problem", f"{error}\n")
            return int(FAILURE)
        if document is None:
            self.setProperty("swingbot_over", True, "swingbot")
            self.descriptionDone = ["attempt has ended"]
            return int(SKIPPED)
        await self.addURL(f"order {document['order']}", f"{self._pages}/order/{document['order']}")
        self.s = json.dumps(document, indent=1)
        result = await super().run()
        self.s = ""
        return int(result)


class Retried(Build):  # type: ignore[misc]
    """A build that is retried if its worker is lost while it starts: Buildbot 4.3.0 fails in that
    case, and the build would never end.
    """

    @deferred
    async def buildPreparationFailure(self, why: Any, state_string: str) -> None:
        if self.workerforbuilder is None or self.workerforbuilder.worker is None:
            log.msg(f"swingbot: the worker was lost in {state_string}; the build is retried")
            await self.master.data.updates.finishStep(self._preparation_step.stepid, RETRY, False)
        else:
            await super().buildPreparationFailure(why, state_string)


def _still_running(step: Any) -> bool:
    return not step.getProperty("swingbot_over")


def factory(make_order: OrderText, attempt_seconds: float, pages: str) -> BuildFactory:
    """Return the steps for one order.

    `make_order(attempt)` returns the order document, or None if the attempt has already ended;
    `pages` is the base URL of links.
    """
    seconds = int(attempt_seconds) + MARGIN_SECONDS
    build_factory = BuildFactory(
        [
            DownloadOrder(make_order, pages, haltOnFailure=True),
            steps.ShellCommand(
                name="attempt",
                description=["working"],
                descriptionDone=["attempt"],
                command=[
                    "swingbot-worker",
                    "attempt",
                    "--order",
                    "order.json",
                    "--state",
                    ATTEMPTS_STATE,
                ],
                doStepIf=_still_running,
                hideStepIf=False,
                logEnviron=False,
                usePTY=False,
                timeout=seconds,
                maxTime=seconds,
                sigtermTime=5,
                haltOnFailure=True,
            ),
        ]
    )
    build_factory.buildClass = Retried
    return build_factory
