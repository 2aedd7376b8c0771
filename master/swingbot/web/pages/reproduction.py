"""`/report/r4/reproduce.tar.gz`: kernels, job and boots of a report, to be run elsewhere.

`/comparison/c5/` and `/experiment/e3/` have the same, with `?testbox=` of one of their testboxes;
`?kernels=0` is without kernel images.
`reproduce.json` lists the contents and what is no longer available.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.model import ids
from swingbot.core.model.artifact import ArtifactError
from swingbot.core.reproduce import Kit, KitArtifact, boot_ids, members

from ..http.fair_threads import FairThreads, client_of
from ..http.file_response import stored


class ClientLeft(Exception):
    """Nobody waits for the kit any more."""


class Kits(Protocol):
    """Implemented by `swingbot.app.reproduction.Reproductions`."""

    def wanted(self, gone: Callable[[], bool]) -> AbstractContextManager[None]:
        """Stop what the block does when `gone` says so. Raises ClientLeft."""
        ...

    def kit(self, id: str, *, kernels: bool = True, testbox: str | None = None) -> Kit: ...
    def kept(self, kit: Kit) -> Path: ...


def routes(kits: Kits, threads: FairThreads) -> list[Route]:
    """The two routes of each report, comparison and experiment.

    `threads` work only while the client waits.
    """

    def of_client(
        answer: Callable[[Request], Response],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            gone = threading.Event()

            def call() -> Response:
                try:
                    with kits.wanted(gone.is_set):
                        return answer(request)
                except ClientLeft:
                    return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)

            watch = asyncio.create_task(_until_disconnected(request, gone))
            try:
                return await threads.run(client_of(request), call)
            finally:
                watch.cancel()

        return answered

    def tarball(request: Request) -> Response:
        kit = _kit(kits, request)
        if kit.missing:
            raise HTTPException(
                404,
                f"{kit.id} can no longer be fully reproduced: {'; '.join(kit.missing[:5])}.",
            )
        try:
            file = kits.kept(kit).open("rb")
        except (OSError, ArtifactError) as error:
            raise HTTPException(
                503,
                f"The tarball of {kit.id} cannot be written just now:"
                f" {getattr(error, 'strerror', None) or error}.",
            ) from error
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return stored(
            request,
            file,
            sha256,
            "application/gzip",
            {"Content-Disposition": f'attachment; filename="{kit.directory}.tar.gz"'},
        )

    def listing(request: Request) -> Response:
        return JSONResponse(facts(_kit(kits, request)))

    return [
        route
        for kind in ("report", "comparison", "experiment")
        for route in (
            Route(f"/{kind}/{{id}}/reproduce.tar.gz", of_client(tarball)),
            Route(f"/{kind}/{{id}}/reproduce.json", of_client(listing)),
        )
    ]


async def _until_disconnected(request: Request, gone: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()


def _kit(kits: Kits, request: Request) -> Kit:
    """Return the kit that an address names. Raises BadId, NotFound."""
    id, kind = request.path_params["id"], request.url.path.split("/")[1]
    ids.read(id, kind)
    query = request.query_params
    return kits.kit(id, kernels=query.get("kernels") != "0", testbox=query.get("testbox"))


def facts(kit: Kit) -> dict[str, Any]:
    """Facts on a kit for scripts."""
    files = [
        {"path": member.path, "sha256": member.content.sha256, "size": member.content.size}
        if isinstance(member.content, KitArtifact)
        else {
            "path": member.path,
            "sha256": hashlib.sha256(member.content.content).hexdigest(),
            "size": len(member.content.content),
        }
        for member in members(kit)
    ]
    return {
        kit.kind: kit.id,
        "directory": kit.directory,
        "boots": boot_ids(kit),
        "files": files,
        "missing": list(kit.missing),
    }
