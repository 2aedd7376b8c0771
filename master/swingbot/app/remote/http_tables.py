"""Tables of a service elsewhere, asked for with a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from swingbot.app.queued_request import GoOn, QueuedRequest
from swingbot.app.remote.http_requests import HttpRequests, shipped
from swingbot.core.model import ids
from swingbot.core.model.answer_documents import AnswerToAnExtension, AnswerToARequest
from swingbot.core.model.lookup import missing
from swingbot.core.patchset.model import PatchSeries, PatchSource
from swingbot.core.patchset.read import read_series
from swingbot.core.table.request_document import (
    AskedExtension,
    SentRow,
    SentTable,
    sent_axes,
    sent_sources,
)
from swingbot.service.ports import RequestError
from swingbot.service.table.extend import ExtensionRequest
from swingbot.service.table.kernels import NamedKernel
from swingbot.service.table.request import TableRequest
from swingbot_jobs import codec

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


class HttpTables(HttpRequests):
    """Each method raises RequestError, NotFound, ServiceError."""

    def ask(
        self, request: TableRequest, jobs: Sequence[str], go_on: GoOn, *, dirty: bool = False
    ) -> QueuedRequest | None:
        """Plan a table, and queue it if `go_on` says so; else return None.

        The patches of the request were read by `with_sources`; `jobs` names shipped jobs. Without
        kernels, those of the checkout since it left the tree's branch are meant. `dirty`: its
        uncommitted changes are a commit of their own.
        """
        if request.vouched:
            raise RequestError(
                "--trusted works on the service's own host only; there an operator vouches for"
                " patches, or for all that you send: `swingbot token create --trust`"
            )
        path = _DOORS[request.kind]
        tree = request.tree or self._only_tree()
        request = self._since_branch(request, tree)
        document = _document(request, tree, jobs) | self._commits(request.kernels.refs, dirty=dirty)
        return self._queue(AnswerToARequest, path, document, go_on)

    def _since_branch(self, request: TableRequest, tree: str) -> TableRequest:
        """Return the request; one without kernels with those of the checkout."""
        kernels = request.kernels
        if kernels.range or kernels.base or kernels.rows or self._checkout is None:
            return request
        base = self._checkout.left_branch_at(lambda commits: self._known(commits, tree=tree))
        self._say(f"range: {base[:12]}..HEAD, since HEAD left the branch of tree {tree}")
        return replace(request, kernels=replace(kernels, range=(base, "HEAD")))

    def extend(self, request: ExtensionRequest, go_on: GoOn) -> QueuedRequest | None:
        """Plan an extension, and queue it if `go_on` says so; else return None."""
        if request.rows or request.vouched:
            raise RequestError(
                "rows are added on the service's own host only; from elsewhere `extend` adds boots"
            )
        kind, number = ids.read(request.id)
        if kind not in ids.TABLES:
            raise RequestError(missing(kind, number))
        asked = codec.plain(AskedExtension(boots=request.boots))
        path = f"/{kind}/{request.id}/extend"
        return self._queue(AnswerToAnExtension, path, asked, go_on)


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
        "job": [shipped(name) for name in jobs],
        "testbox": list(request.testboxes),
        "boots": request.boots,
        "looks": request.looks,
        "min_effect": request.min_effect_pct,
        "private_to": list(request.private_to or ()),
        "mail": request.mail,
    }
    return {name: value for name, value in fields.items() if value} | table.to_json()


def _row(row: NamedKernel) -> SentRow:
    sources = row.series.sources if isinstance(row.series, SourcedSeries) else ()
    return SentRow(name=row.name, ref=row.ref, patches=sent_sources(sources), each=row.each)
