"""Bisections of a service elsewhere, asked for with a token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from swingbot.app.queued_request import GoOn, QueuedRequest
from swingbot.app.remote.http_requests import HttpRequests, shipped
from swingbot.core.model.answer_documents import (
    AnswerToABisection,
    AnswerToAResumption,
    SteeredBisection,
)
from swingbot.core.table.request_document import (
    SentBisection,
    SentHint,
    SentResumption,
    SentSkip,
)
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.ports import RequestError
from swingbot_jobs import codec


class HttpBisections(HttpRequests):
    """Each method raises RequestError, NotFound, ServiceError."""

    def start(
        self, request: BisectionRequest, jobs: Sequence[str], go_on: GoOn, *, dirty: bool = False
    ) -> QueuedRequest | None:
        """Plan a bisection, and queue it if `go_on` says so; else return None.

        `jobs` names shipped jobs. `dirty`: uncommitted changes of the checkout are a commit of
        their own.
        """
        if request.trusted:
            raise RequestError(
                "--trusted works on the service's own host only; there an operator vouches for"
                " commits, or for all that you send: `swingbot token create --trust`"
            )
        sent = SentBisection(
            tree=request.tree or self._only_tree(),
            range=f"{request.good}..{request.bad}",
            metric=request.metric,
            unit_job=request.unit_job,
            job=tuple(map(shipped, jobs)),
            testbox=request.testbox,
            set=request.overrides,
            mail=request.mail,
        )
        commits = self._commits([request.good, request.bad], dirty=dirty)
        return self._queue(AnswerToABisection, "/bisect", codec.plain(sent) | commits, go_on)

    def skip(self, id_: str, commits: Sequence[str], why: str | None, *, undo: bool) -> list[str]:
        """Skip commits, or undo it; return their full names."""
        sent = SentSkip(commits=self._named(commits), why=why, undo=undo)
        return self._steered(f"/bisection/{id_}/skip", codec.plain(sent))

    def hint(self, id_: str, commits: Sequence[str], factor: float, why: str | None) -> list[str]:
        """Weight commits; return their full names."""
        sent = SentHint(commits=self._named(commits), factor=factor, why=why)
        return self._steered(f"/bisection/{id_}/hint", codec.plain(sent))

    def resume(self, id_: str, boots: int, why: str | None, go_on: GoOn) -> QueuedRequest | None:
        """Plan a resumption, and carry it out if `go_on` says so; else return None."""
        sent = codec.plain(SentResumption(boots=boots, why=why))
        return self._queue(AnswerToAResumption, f"/bisection/{id_}/resume", sent, go_on)

    def _steered(self, path: str, document: Mapping[str, Any]) -> list[str]:
        done = self._service.post(SteeredBisection, path, document)
        return [str(commit) for commit in done["commits"]]

    def _named(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words, commits of the checkout by their full names."""
        return tuple("..".join(map(self._full_name, word.split(".."))) for word in words)

    def _full_name(self, ref: str) -> str:
        found = self._checkout.resolve(ref) if self._checkout is not None and ref else None
        return found or ref
