"""`/variant/v5/patch`: the hunks of the commit of a kernel, those of a function first; with `since`
the commits after that of another kernel that change the function.
"""

from __future__ import annotations

from typing import Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from swingbot.core.patchset.hunks import hunks_of, touching
from swingbot.service.ports import GitError
from swingbot.service.report.results_query import checked

from ..http.render import Renderer
from ..http.snapshot_reader import SnapshotReader
from ..ports import Row

_HUNKS: Final = 200  # on one page
_COMMITS: Final = 40  # of a range that are looked at
_LINES: Final = 4000  # of all hunks on one page


class CommitPatches(Protocol):
    """Commits of the mirror. Both raise GitError."""

    def patch(self, commit: str) -> bytes: ...  # as a mail
    def touching(self, good: str, bad: str, source: str, most: int) -> list[tuple[str, str]]: ...


class PatchPages:
    def __init__(self, source: SnapshotReader, renderer: Renderer, git: CommitPatches) -> None:
        self._source, self._renderer, self._git = source, renderer, git

    def routes(self) -> list[Route]:
        return [Route("/variant/{id}/patch", self.show)]

    def show(self, request: Request) -> Response:
        function = checked("function", request.query_params.get("function", ""))
        since = checked("since", request.query_params.get("since", ""))
        with self._source.reading() as conn:
            variant = self._source.read.variant(conn, request.path_params["id"])
            base = self._source.read.variant(conn, since) if since else None
        if base is not None:
            return self._of_range(request, base, variant, function)
        try:
            patch = self._git.patch(variant["commit"])
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

    def _of_range(self, request: Request, base: Row, head: Row, function: str) -> Response:
        """Commits of a range that touch the file of a function, with their hunks that change it."""
        file = checked("file", request.query_params.get("file", ""))
        source = file.rpartition(".")[0]
        try:
            found = self._git.touching(base["commit"], head["commit"], source, _COMMITS + 1)
        except GitError as error:
            raise HTTPException(404, f"The commits cannot be shown: {error}.") from None
        commits: list[Row] = []
        left = _LINES
        for commit, subject in found[:_COMMITS]:
            try:
                patch = self._git.patch(commit).decode("utf-8", "replace")
            except GitError as error:  # nor its subject, which only the one who sent it may see
                commits.append({"commit": commit, "subject": "", "why": str(error), "hunks": []})
                continue
            hunks = []
            for hunk in touching(list(hunks_of(patch)), function):
                lines = [_readable(line) for line in hunk.lines[:left]]
                left -= len(lines)
                if lines:
                    hunks.append({"path": _readable(hunk.path), "lines": lines})
            commits.append({"commit": commit, "subject": subject, "why": "", "hunks": hunks})
        return self._renderer.page(
            "patches.html",
            base=base,
            head=head,
            function=function,
            file=file,
            commits=commits,
            more=len(found) > _COMMITS,
            most=_COMMITS,
        )


def _readable(line: str) -> str:
    """The line without control characters; blanks and tabs stay."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)
