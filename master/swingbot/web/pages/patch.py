"""`/variant/v5/patch`: the hunks of the commit of a kernel, those of a function first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.patchset.hunks import hunks_of, touching
from swingbot.service.ports import GitError
from swingbot.service.report.results_query import checked

from ..http.render import Renderer
from ..http.snapshot_reader import SnapshotReader

_HUNKS: Final = 200  # on one page
_LINES: Final = 4000  # of all hunks on one page


class PatchPages:
    """`patch` returns a commit as a mail. Raises GitError."""

    def __init__(
        self, source: SnapshotReader, renderer: Renderer, patch: Callable[[str], bytes]
    ) -> None:
        self._source, self._renderer, self._patch = source, renderer, patch

    def routes(self) -> list[Route]:
        return [Route("/variant/{id}/patch", self.show)]

    def show(self, request: Request) -> Response:
        function = checked("function", request.query_params.get("function", ""))
        with self._source.reading() as conn:
            variant = self._source.read.variant(conn, request.path_params["id"])
        try:
            patch = self._patch(variant["commit"])
        except GitError as error:
            why = f"The patch of {variant['commit'][:12]} cannot be shown: {error}."
            raise HTTPException(404, why) from None
        hunks = list(hunks_of(patch.decode("utf-8", "replace")))
        own = touching(hunks, function)
        shown, left = [], _LINES
        for hunk in [*own, *(hunk for hunk in hunks if hunk not in own)][:_HUNKS]:
            lines = [_readable(line) for line in hunk.lines[:left]]
            left -= len(lines)
            if lines:
                shown.append({"path": _readable(hunk.path), "lines": lines, "own": hunk in own})
        return self._renderer.page(
            "patch.html",
            this=variant,
            function=function,
            hunks=shown,
            own=len(own),
            total=len(hunks),
        )


def _readable(line: str) -> str:
    """The line without control characters; blanks and tabs stay."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)
