"""Tables of a service elsewhere, asked for with a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from swingbot.app.asked_table import AskedTable, GoOn
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.login import Login
from swingbot.core.model import ids
from swingbot.core.patchset.model import PatchSeries, PatchSource
from swingbot.core.patchset.read import read_series
from swingbot.core.table.request_document import SentRow, SentTable, sent_axes, sent_sources
from swingbot.service.ports import RequestError
from swingbot.service.table.kernels import NamedKernel
from swingbot.service.table.request import TableRequest

_DOORS: Final = {"asked": "/compare", "experiment": "/experiment"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedSeries(PatchSeries):
    """A series with the files that it was read from, which the service reads itself."""

    sources: tuple[PatchSource, ...] = ()


def with_sources(sources: Sequence[PatchSource], *, stack: bool = False) -> SourcedSeries:
    """`core.patchset.read.read_series` for a request to be sent. Raises SeriesError."""
    series = read_series(sources, stack=stack)
    return SourcedSeries(
        patches=series.patches,
        left_out=series.left_out,
        notes=series.notes,
        sources=tuple(sources),
    )


class HttpTables:
    """Each method raises RequestError, NotFound, ServiceError."""

    def __init__(self, login: Login) -> None:
        self._url, self._service = login.url, Connection(login)

    def ask(self, request: TableRequest, jobs: Sequence[str], go_on: GoOn) -> AskedTable | None:
        """Plan a table, and queue it if `go_on` says so; else return None.

        The patches of the request were read by `with_sources`; `jobs` names shipped jobs.
        """
        if request.vouched:
            raise RequestError(
                "--trusted works on the service's own host only; there an operator vouches for"
                " patches"
            )
        path = _DOORS[request.kind]
        document = _document(request, request.tree or self._only_tree(), jobs)
        planned = self._service.post(path, document | {"dry_run": True})
        if planned["refused"]:
            raise RequestError(planned["refused"])
        if not go_on(planned["plan"], planned["lines"]):
            return None
        queued = self._service.post(path, document)
        return AskedTable(id=queued["id"], plan=queued["plan"])

    def cancel(self, id_: str) -> str:
        """Cancel a table, and return its status before."""
        return str(self._service.post(f"/{ids.read(id_)[0]}/{id_}/cancel", {})["was"])

    def _only_tree(self) -> str:
        trees = [str(tree["name"]) for tree in self._service.rows("/trees.json", {}, 100)]
        if len(trees) != 1:
            names = f"one of {', '.join(trees)}" if trees else "it has none yet"
            raise RequestError(f"name a tree of {self._url} with --tree: {names}")
        return trees[0]


def _document(request: TableRequest, tree: str, jobs: Sequence[str]) -> dict[str, Any]:
    """Return the JSON of a request (docs/remote.md)."""
    kernels = request.kernels
    table = SentTable(
        rows=tuple(map(_row, kernels.rows)),
        paths=tuple(kernels.paths),
        axes=sent_axes(request.axes),
        exclude=tuple(request.exclude),
        set=request.overrides,
    )
    fields = {
        "tree": tree,
        "range": "..".join(kernels.range or ()),
        "base": kernels.base or "",
        "against": list(request.against),
        "with": list(request.columns),
        "job": [_shipped(name) for name in jobs],
        "testbox": list(request.testboxes),
        "boots": request.boots,
        "looks": request.looks,
        "min_effect": request.min_effect_pct,
    }
    return {name: value for name, value in fields.items() if value} | table.to_json()


def _row(row: NamedKernel) -> SentRow:
    sources = row.series.sources if isinstance(row.series, SourcedSeries) else ()
    return SentRow(name=row.name, ref=row.ref, patches=sent_sources(sources), each=row.each)


def _shipped(name: str) -> str:
    """Return the file name of a shipped job. Raises RequestError for a file of one's own."""
    if Path(name).name != name or Path(name).is_file():
        raise RequestError(
            f"job file {name}: a service elsewhere runs the jobs that it ships; give the name of"
            " one, or ask its operator to add yours"
        )
    return name if name.endswith(".yaml") else f"{name}.yaml"
