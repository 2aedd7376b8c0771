"""Tables and bisections requested over the web, within a quota."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from swingbot.adapters.mail_reader import read_patches
from swingbot.app.form_choices import form_choices
from swingbot.app.settings import Settings
from swingbot.core.access import quota
from swingbot.core.access.quota import PlanningTime, Quota, QuotaUsage
from swingbot.core.access.roles import Person
from swingbot.core.model.records import JobFile
from swingbot.core.patchset.bundle import SentCommits
from swingbot.core.patchset.model import PatchSeries, PatchSource
from swingbot.core.text.nearest import instead_of
from swingbot.service.asked.requested import Requested
from swingbot.service.bisect import ask
from swingbot.service.bisect.plan import BisectionPlan
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.bisect.resume import ResumeRequest, Resumption, plan_resumption, resume
from swingbot.service.ports import GitError, Lab, RequestError
from swingbot.service.table.extend import (
    Extension,
    ExtensionRequest,
    extend,
    plan_extension,
)
from swingbot.service.table.plan import TablePlan, prepared
from swingbot.service.table.request import TableRequest
from swingbot.web.pages.refused import OverQuota
from swingbot.web.pages.table_choices import TableChoices
from swingbot_db import read
from swingbot_db.engine import Engine
from swingbot_db.store import transactions
from swingbot_jobs.language.job_files import read_job, shipped


class DatabaseSubmitter:
    """Implements the ports of the pages that ask: TableSubmitter, Extender, BisectionSubmitter.

    `lab` is created on the first request.
    """

    def __init__(self, settings: Settings, engine: Engine, lab: Callable[[], Lab]) -> None:
        self._jobs, self._engine, self._lab = Path(settings.paths.jobs), engine, lab
        self._begin = transactions(engine)
        self._quota = Quota(
            open_requests=settings.web.open_requests,
            testbox_seconds=60.0 * settings.web.testbox_minutes,
        )
        self._planning = PlanningTime()

    @contextmanager
    def planning(self, person: Person) -> Iterator[None]:
        """Count the time of the block for `person`, who asks one request at a time.

        Raises OverQuota if the time of 24 hours is used up.
        """
        started = time.monotonic()
        if (why := self._planning.refusal(person, started)) is not None:
            raise OverQuota(why)
        try:
            yield
        finally:
            ended = time.monotonic()
            self._planning.add(person, ended - started, ended)

    def choices(self, tree: str, testboxes: Sequence[str], jobs: Sequence[str]) -> TableChoices:
        chosen = (tree, testboxes, jobs)
        return form_choices(self._lab(), self._engine, self._jobs, chosen)

    def job_files(self, names: Sequence[str]) -> list[JobFile]:
        """Read job files by names from `choices`, never by path. Raises RequestError."""
        known = shipped(self._jobs)
        for name in names:
            if name not in known:
                raise RequestError(
                    f"job file {name[:80]!r} does not exist; {instead_of(name, known)}"
                )
        return [
            JobFile(name=name, text=read_job(self._jobs / name, [self._jobs])) for name in names
        ]

    def series(self, sources: Sequence[PatchSource], *, stack: bool) -> PatchSeries:
        return read_patches(sources, stack=stack)

    def used(self, person: Person) -> tuple[QuotaUsage, Quota | None]:
        with self._begin("quota") as tx:
            return tx.access.used(person.who), quota.quota_of(person, self._quota)

    def plan(self, person: Person, request: TableRequest) -> tuple[TablePlan, str | None]:
        """Return the plan, and the reason if the quota would reject it. Raises RequestError."""
        with prepared(self._lab(), self._named(person, request)) as table:
            planned = table.plan()
        return planned, self._refusal(person, planned)

    def ask(self, person: Person, request: TableRequest) -> tuple[Requested, TablePlan]:
        """Queue the request. Raises RequestError, OverQuota."""
        with prepared(self._lab(), self._named(person, request)) as table:
            planned = table.plan()
            refused = self._refusal(person, planned)
            if refused is not None:
                raise OverQuota(refused)
            return table.queue(planned.cost.testbox_seconds), planned

    def plan_extension(
        self, person: Person, request: ExtensionRequest
    ) -> tuple[Extension, str | None]:
        """Return the plan, and the reason if the quota would reject it.

        Raises RequestError, NotYours.
        """
        planned = plan_extension(self._lab(), replace(request, asked_by=person))
        return planned, self._refusal_again(person, planned.cost.testbox_seconds)

    def extend(self, person: Person, request: ExtensionRequest) -> Extension:
        """Queue the additional boots. Raises RequestError, NotYours, OverQuota."""
        _, refused = self.plan_extension(person, request)
        if refused is not None:
            raise OverQuota(refused)
        return extend(self._lab(), replace(request, asked_by=person))

    def plan_bisection(self, request: BisectionRequest) -> tuple[BisectionPlan, str | None]:
        """Return the plan, and the reason if the quota would reject it.

        Raises RequestError, NotYours.
        """
        assert request.asked_by is not None
        with ask.prepared(self._lab(), self._search(request)) as bisection:
            planned = bisection.plan()
        return planned, self._refusal(request.asked_by, planned)

    def start_bisection(self, request: BisectionRequest) -> tuple[Requested, BisectionPlan]:
        """Queue the request. Raises RequestError, NotYours, OverQuota."""
        assert request.asked_by is not None
        with ask.prepared(self._lab(), self._search(request)) as bisection:
            planned = bisection.plan()
            refused = self._refusal(request.asked_by, planned)
            if refused is not None:
                raise OverQuota(refused)
            return bisection.queue(planned.cost.testbox_seconds), planned

    def plan_resumption(
        self, person: Person, request: ResumeRequest
    ) -> tuple[Resumption, str | None]:
        """Return the plan, and the reason if the quota would reject it.

        Raises NotFound, RequestError, NotYours.
        """
        lab = self._lab()
        planned = plan_resumption(lab.transaction, lab.catalogue, request)
        return planned, self._refusal_again(person, planned.testbox_seconds)

    def resume(self, person: Person, request: ResumeRequest) -> Resumption:
        """Resume the bisection. Raises NotFound, RequestError, NotYours, OverQuota."""
        _, refused = self.plan_resumption(person, request)
        if refused is not None:
            raise OverQuota(refused)
        lab = self._lab()
        return resume(lab.transaction, lab.catalogue, request)

    def _named(self, person: Person, request: TableRequest) -> TableRequest:
        sent = self._with_releases(request.tree, request.kernels.refs, request.sent)
        return replace(request, asked_by=person, sent=sent)

    def _search(self, request: BisectionRequest) -> BisectionRequest:
        refs = (request.good, request.bad)
        return replace(request, sent=self._with_releases(request.tree, refs, request.sent))

    def _with_releases(
        self, tree: str | None, refs: Sequence[str], sent: SentCommits
    ) -> SentCommits:
        """Add the commits of releases that the mirror has no tag of."""
        if tree is None:
            return sent
        with self._engine.connect() as conn:
            found = read.release_commits(conn, tree, refs)
        git = self._lab().tools.git
        for ref in list(found):
            with suppress(GitError):
                git.resolve(tree, ref)
                del found[ref]
        return replace(sent, names={**found, **sent.names})

    def _refusal_again(self, person: Person, testbox_seconds: float) -> str | None:
        """Why the quota rejects more of what the person asked for: open again, not one more."""
        used, most = self.used(person)
        return quota.refusal(
            replace(used, open_requests=0, daily_requests=0), testbox_seconds, most
        )

    def _refusal(self, person: Person, planned: TablePlan | BisectionPlan) -> str | None:
        used, most = self.used(person)
        return quota.refusal(used, planned.cost.testbox_seconds, most)
