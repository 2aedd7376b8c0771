"""Reproduction kits of a service elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from swingbot.app.kit_file import IncompleteReproduction, appearing, is_tarball, kind_of, unpack
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.login import Login
from swingbot.core.model.answer_documents import ContentsOfAKit


def fetch_kit(
    login: Login, id_: str, out: Path, *, kernels: bool, testbox: str | None
) -> dict[str, Any]:
    """Write the kit of a table or report to `out`; return what `reproduce.json` says of it.

    Raises IncompleteReproduction, BadId, NotFound, ServiceError, OSError.
    """
    service = Connection(login)
    path = f"/{kind_of(id_)}/{id_}/reproduce"
    query = ({} if kernels else {"kernels": "0"}) | ({"testbox": testbox} if testbox else {})
    facts: dict[str, Any] = service.json(ContentsOfAKit, f"{path}.json", query)
    if facts["missing"]:
        raise IncompleteReproduction(id_, facts["missing"])
    tarball = service.content(f"{path}.tar.gz", query)
    if is_tarball(out):
        with appearing(out) as file:
            file.write(tarball)
    else:
        unpack(lambda file: file.write(tarball), facts["directory"], out)
    return facts
