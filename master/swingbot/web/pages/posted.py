"""`/posted.json?mail=&patch=`: the commits that mails posted, for `swingbot check`."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.limits import QUERY_VALUES
from swingbot.core.mail.message import is_message_id
from swingbot.service.ports import RequestError

from ..http.snapshot_reader import SnapshotReader

_PATCH_ID: Final = re.compile("[0-9a-f]{40}")


class PostedCommits:
    def __init__(self, source: SnapshotReader) -> None:
        self._source = source

    def routes(self) -> list[Route]:
        return [Route("/posted.json", self.document)]

    def document(self, request: Request) -> Response:
        """Raises RequestError."""
        mails, patches = map(request.query_params.getlist, ("mail", "patch"))
        most = max(len(mails), len(patches))
        known = all(map(is_message_id, mails)) and all(map(_PATCH_ID.fullmatch, patches))
        if not 0 < most <= QUERY_VALUES or not known:
            raise RequestError(
                f"give 1 to {QUERY_VALUES} Message-IDs, as in ?mail=<20240102-topic@example.org>,"
                " or patch-ids, as in ?patch= with 40 hexadecimal digits"
            )
        with self._source.reading() as conn:
            return JSONResponse(self._source.read.posted(conn, mails, patches))
