"""`/report/r4/reproduce.tar.gz`: a report's kernels, job and boots, to be run elsewhere; `reproduce.json` says what is in it and what is gone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from swingbot.core.model.artifact import ArtifactError
from swingbot.core.reproduce import Kit, KitArtifact, members

from .file_response import stored


class Kits(Protocol):
    """`swingbot.app.reproduction.Reproductions` fits."""

    def kit(self, id: str) -> Kit: ...
    def kept(self, kit: Kit) -> Path: ...


def routes(kits: Kits) -> list[Route]:
    """The two addresses of each report."""

    def tarball(request: Request) -> Response:
        kit = kits.kit(request.path_params["id"])
        if kit.missing:
            raise HTTPException(
                404,
                f"{kit.report} cannot be reproduced in full any more: {'; '.join(kit.missing[:5])}.",
            )
        try:
            file = kits.kept(kit).open("rb")
        except (OSError, ArtifactError) as error:
            raise HTTPException(
                503,
                f"The tarball of {kit.report} cannot be written just now: {getattr(error, 'strerror', None) or error}.",
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
        return JSONResponse(facts(kits.kit(request.path_params["id"])))

    return [
        Route("/report/{id}/reproduce.tar.gz", tarball),
        Route("/report/{id}/reproduce.json", listing),
    ]


def facts(kit: Kit) -> dict[str, Any]:
    """What a script wants to know of a kit."""
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
        "report": kit.report,
        "directory": kit.directory,
        "boots": [boot.id for boot in kit.boots],
        "files": files,
        "missing": list(kit.missing),
    }
