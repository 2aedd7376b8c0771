"""Requests to a service elsewhere, with the commits of a checkout that it lacks."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from swingbot.app.queued_request import GoOn, QueuedRequest
from swingbot.app.remote.checkout import Checkout
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.login import Login
from swingbot.core.model import ids
from swingbot.core.model.answer_documents import Cancelled, KnownCommits, Published
from swingbot.core.model.list_documents import LineOfATree
from swingbot.core.table.request_document import AskedCommits, SentTable
from swingbot.core.text.numbers import count
from swingbot.service.ports import RequestError
from swingbot_jobs import codec


class HttpRequests:
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

    def cancel(self, id_: str) -> str:
        """Cancel a table or bisection, and return its status before."""
        path = f"/{ids.read(id_)[0]}/{id_}/cancel"
        return str(self._service.post(Cancelled, path, {})["was"])

    def publish(self, id_: str) -> None:
        """Let everybody read a private table."""
        self._service.post(Published, f"/{ids.read(id_)[0]}/{id_}/publish", {})

    def _queue(
        self, kind: Any, path: str, document: Mapping[str, Any], go_on: GoOn
    ) -> QueuedRequest | None:
        """Send a request as a dry run, and again if `go_on` says so."""
        planned = self._service.post(kind, path, {**document, "dry_run": True})
        if refused := planned.get("refused"):
            raise RequestError(refused)
        if not go_on(planned["plan"], planned["lines"]):
            return None
        queued = self._service.post(kind, path, document)
        return QueuedRequest(id=queued["id"], plan=queued["plan"])

    def _commits(self, refs: Sequence[str], *, dirty: bool) -> dict[str, Any]:
        """Return the keys of a request about the commits of the checkout."""
        if self._checkout is None:
            if dirty:
                raise RequestError("--dirty: this is not a git checkout")
            return {}
        to_send = self._checkout.to_send(refs, self._known, dirty=dirty)
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
        answer = self._service.post(KnownCommits, "/commits/known", codec.plain(asked))
        return [str(commit) for commit in answer["known"]]

    def _only_tree(self) -> str:
        found = self._service.rows(LineOfATree, "/trees.json", {}, 100)
        trees = [str(tree["name"]) for tree in found]
        if len(trees) != 1:
            names = f"one of {', '.join(trees)}" if trees else "it has none yet"
            raise RequestError(f"name a tree of {self._url} with --tree: {names}")
        return trees[0]


def shipped(name: str) -> str:
    """Return the file name of a shipped job. Raises RequestError for a file of one's own."""
    if Path(name).name != name or Path(name).is_file():
        raise RequestError(
            f"job file {name}: a service elsewhere runs the jobs that it ships; give the name of"
            " one, or ask its operator to add yours"
        )
    return name if name.endswith(".yaml") else f"{name}.yaml"
