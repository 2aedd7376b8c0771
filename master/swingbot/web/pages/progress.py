"""How far a table or bisection is: `progress.json`, and a stream of what changes."""

from __future__ import annotations

import hashlib
import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.model import ids
from swingbot.core.model.answer_documents import ProgressOfARequest
from swingbot.service.report.progress import progress

from ..access.session import Sessions
from ..http.event_streams import EventStreams, StateEvent
from ..http.fair_threads import FairThreads
from ..http.snapshot_reader import SnapshotReader


class ProgressPages:
    def __init__(self, source: SnapshotReader, sessions: Sessions, threads: FairThreads) -> None:
        """`threads` read what is followed."""
        self._source, self._sessions = source, sessions
        self._streams = EventStreams(self._event, threads)

    def routes(self) -> list[Route]:
        return [
            route
            for kind in ids.REQUESTS
            for route in (
                Route(f"/{kind}/{{id}}/progress.json", self.document),
                Route(f"/{kind}/{{id}}/progress", self.stream),
            )
        ]

    def document(self, request: Request) -> Response:
        return JSONResponse(self._progress(_id(request)))

    async def stream(self, request: Request) -> Response:
        person = await self._sessions.person(request)
        return await self._streams.answer(request, _id(request), person.who if person else None)

    def _progress(self, id: str) -> ProgressOfARequest:
        with self._source.reading() as conn:
            return progress(self._source.read, conn, id)

    def _event(self, id: str) -> StateEvent:
        """An event for what a reader would see change: the time left counts in steps of 10 s."""
        document = self._progress(id)
        eta = document["eta_seconds"]
        seen = json.dumps(document | {"eta_seconds": eta and round(eta, -1)})
        return StateEvent(
            id=hashlib.sha256(seen.encode()).hexdigest()[:16],
            data=json.dumps(document),
            last=document["over"],
        )


def _id(request: Request) -> str:
    """Raises BadId."""
    id = str(request.path_params["id"])
    ids.read(id, request.url.path.split("/")[1])
    return id
