"""Bisections of a service elsewhere, asked for with a token."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.app.queued_request import GoOn, QueuedRequest
from swingbot.app.remote.http_requests import HttpRequests, shipped
from swingbot.core.table.request_document import SentBisection
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.ports import RequestError
from swingbot_jobs import codec


class HttpBisections(HttpRequests):
    """Each method raises RequestError, NotFound, ServiceError."""

    def start(
        self, request: BisectionRequest, jobs: Sequence[str], go_on: GoOn, *, dirty: bool = False
    ) -> QueuedRequest | None:
        """Plan a bisection, and queue it if `go_on` says so; else return None.

        `jobs` names shipped jobs. `dirty`: uncommitted changes of the checkout are a commit of
        their own.
        """
        if request.trusted:
            raise RequestError(
                "--trusted works on the service's own host only; there an operator vouches for"
                " commits"
            )
        sent = SentBisection(
            tree=request.tree or self._only_tree(),
            range=f"{request.good}..{request.bad}",
            metric=request.metric,
            unit_job=request.unit_job,
            job=tuple(map(shipped, jobs)),
            testbox=request.testbox,
            set=request.overrides,
        )
        commits = self._commits([request.good, request.bad], dirty=dirty)
        return self._queue("/bisect", codec.plain(sent) | commits, go_on)
