"""`/posted.json?mail=`: the commits that mails posted, for `swingbot check`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.limits import QUERY_VALUES
from swingbot.core.mail.message import is_message_id
from swingbot.service.ports import RequestError

from ..http.snapshot_reader import SnapshotReader


class PostedCommits:
    def __init__(self, source: SnapshotReader) -> None:
        self._source = source

    def routes(self) -> list[Route]:
        return [Route("/posted.json", self.document)]

    def document(self, request: Request) -> Response:
        """Raises RequestError."""
        mails = request.query_params.getlist("mail")
        if not 0 < len(mails) <= QUERY_VALUES or not all(map(is_message_id, mails)):
            raise RequestError(
                f"give 1 to {QUERY_VALUES} Message-IDs, as in ?mail=<20240102-topic@example.org>"
            )
        with self._source.reading() as conn:
            return JSONResponse(self._source.read.posted(conn, mails))
