"""Tables of a service elsewhere, asked for with a token."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from swingbot.app.asked_table import AskedTable, GoOn
from swingbot.app.remote.checkout import Checkout
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.login import Login
from swingbot.core.model import ids
from swingbot.core.model.lookup import missing
from swingbot.core.patchset.model import PatchSeries, PatchSource
from swingbot.core.patchset.read import read_series
from swingbot.core.table.request_document import (
    AskedCommits,
    AskedExtension,
    SentRow,
    SentTable,
    sent_axes,
    sent_sources,
)
from swingbot.core.text.numbers import count
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


class HttpTables:
    """Each method raises RequestError, NotFound, ServiceError.

    `checkout` is that of the person, if there is one here; `say` tells what is sent of it.
    """

    def __init__(
        self,
        login: Login,
        checkout: Checkout | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._url, self._service = login.url, Connection(login)
        self._checkout, self._say = checkout, say

    def ask(
        self, request: TableRequest, jobs: Sequence[str], go_on: GoOn, *, dirty: bool = False
    ) -> AskedTable | None:
        """Plan a table, and queue it if `go_on` says so; else return None.

        The patches of the request were read by `with_sources`; `jobs` names shipped jobs. Without
        kernels, those of the checkout since it left the tree's branch are meant. `dirty`: its
        uncommitted changes are a commit of their own.
        """
        if request.vouched:
            raise RequestError(
                "--trusted works on the service's own host only; there an operator vouches for"
                " patches"
            )
        path = _DOORS[request.kind]
        tree = request.tree or self._only_tree()
        request = self._since_branch(request, tree)
        document = _document(request, tree, jobs) | self._commits(request, dirty=dirty)
        return self._queue(path, document, go_on)

    def _queue(self, path: str, document: Mapping[str, Any], go_on: GoOn) -> AskedTable | None:
        """Send a request as a dry run, and again if `go_on` says so."""
        planned = self._service.post(path, {**document, "dry_run": True})
        if planned["refused"]:
            raise RequestError(planned["refused"])
        if not go_on(planned["plan"], planned["lines"]):
            return None
        queued = self._service.post(path, document)
        return AskedTable(id=queued["id"], plan=queued["plan"])

    def _since_branch(self, request: TableRequest, tree: str) -> TableRequest:
        """Return the request; one without kernels with those of the checkout."""
        kernels = request.kernels
        if kernels.range or kernels.base or kernels.rows or self._checkout is None:
            return request
        base = self._checkout.left_branch_at(lambda commits: self._known(commits, tree=tree))
        self._say(f"range: {base[:12]}..HEAD, since HEAD left the branch of tree {tree}")
        return replace(request, kernels=replace(kernels, range=(base, "HEAD")))

    def _commits(self, request: TableRequest, *, dirty: bool) -> dict[str, Any]:
        """Return the keys of a request about the commits of the checkout."""
        if self._checkout is None:
            if dirty:
                raise RequestError("--dirty: this is not a git checkout")
            return {}
        to_send = self._checkout.to_send(request.kernels, self._known, dirty=dirty)
        if not to_send.sent.names:
            return {}
        if file := to_send.file:
            self._say(
                f"sends {count(to_send.count, 'commit')} of {self._checkout.path} that"
                f" {self._url} lacks ({len(file) / 1024:.1f} KiB)"
            )
        table = SentTable(commits=to_send.sent.names, bundle=base64.b64encode(file).decode("ascii"))
        return table.to_json()

    def _known(self, commits: Sequence[str], tree: str | None = None) -> list[str]:
        asked = AskedCommits(commits=tuple(commits), tree=tree)
        answer = self._service.post("/commits/known", codec.plain(asked))
        return [str(commit) for commit in answer["known"]]

    def extend(self, request: ExtensionRequest, go_on: GoOn) -> AskedTable | None:
        """Plan an extension, and queue it if `go_on` says so; else return None."""
        if request.rows or request.vouched:
            raise RequestError(
                "rows are added on the service's own host only; from elsewhere `extend` adds boots"
            )
        kind, number = ids.read(request.id)
        if kind not in ids.TABLES:
            raise RequestError(missing(kind, number))
        asked = codec.plain(AskedExtension(boots=request.boots))
        return self._queue(f"/{kind}/{request.id}/extend", asked, go_on)

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
