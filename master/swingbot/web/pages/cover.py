"""`/cover.json?tree=&code=`: which jobs run the code of a source or commit, for `jobs cover`.

For that git compares two commits, and a child reads the record of a kernel, each within its limits
of memory and processor time; the client pays for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.service.ports import Lab
from swingbot.service.ports.kernels import KernelRecords
from swingbot.service.report.job_cover import JobCover
from swingbot.service.report.results_query import checked

from ..http.snapshot_reader import SnapshotReader

_KEYS: Final = ("tree", "code")


class CoverDocument:
    def __init__(
        self, source: SnapshotReader, kernels: KernelRecords, lab: Callable[[], Lab]
    ) -> None:
        self._cover = JobCover(read=source.read, reading=source.reading, kernels=kernels, lab=lab)

    def routes(self) -> list[Route]:
        return [Route("/cover.json", self.document)]

    def document(self, request: Request) -> Response:
        """Raises RequestError."""
        given = request.query_params
        if set(given) != set(_KEYS):
            raise HTTPException(400, "give `tree` and `code`, a path or a commit, and nothing else")
        tree, code = (checked(key, given[key]) for key in _KEYS)
        return JSONResponse(self._cover.of(tree, code))
