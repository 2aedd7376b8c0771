"""Comparisons and experiments requested over the web, within a quota, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swingbot.adapters.job_files import read_job
from swingbot.app.commands.experiment import plan_json
from swingbot.app.settings import Settings
from swingbot.core.access import quota
from swingbot.core.access.quota import Quota, QuotaUsage
from swingbot.core.access.roles import Person
from swingbot.core.model import ids
from swingbot.core.model.records import JobFile
from swingbot.service.ports import Lab, RequestError
from swingbot.service.table.ask_experiment import ask_experiment, plan_asked
from swingbot.service.table.experiment import ExperimentRequest, Planned
from swingbot.service.table.request import ComparisonRequest
from swingbot.service.table.submit import RequestCost, ask_comparison, foresee_cost
from swingbot.web.pages.compare import OverQuota, SubmittedComparison
from swingbot.web.pages.experiment_form import SubmittedExperiment
from swingbot_db import access, read
from swingbot_db.engine import Engine


class DatabaseSubmitter:
    """Implements `swingbot.web.pages.compare.ComparisonSubmitter`.

    `lab` is created on the first request.
    """

    def __init__(self, settings: Settings, engine: Engine, lab: Callable[[], Lab]) -> None:
        self._jobs, self._engine, self._lab = Path(settings.paths.jobs), engine, lab
        self._quota = Quota(
            open_requests=settings.web.open_requests,
            testbox_seconds=60.0 * settings.web.testbox_minutes,
        )
        # Two concurrent requests must not both use the remaining quota.
        self._one_at_a_time = threading.Lock()

    def choices(self) -> dict[str, list[str]]:
        """Watched trees, shipped job files and testboxes."""
        with self._engine.connect() as conn:
            trees = [row["name"] for row in read.list_trees(conn, {"state": "watched"})]
        return {
            "trees": trees,
            "jobs": sorted(path.name for path in self._jobs.glob("*.yaml")),
            "testboxes": sorted(self._lab().catalogue.testboxes.present),
        }

    def job_files(self, names: Sequence[str]) -> list[JobFile]:
        """Read job files by names from `choices`, never by path. Raises RequestError."""
        shipped = {path.name: path for path in self._jobs.glob("*.yaml")}
        for name in names:
            if name not in shipped:
                raise RequestError(
                    f"job file {name[:80]!r} does not exist; use one of"
                    f" {', '.join(sorted(shipped))}"
                )
        return [JobFile(name=name, text=read_job(shipped[name], [self._jobs])) for name in names]

    def used(self, person: Person) -> tuple[QuotaUsage, Quota | None]:
        with self._engine.connect() as conn:
            return access.used(conn, person.who), quota.quota_of(person, self._quota)

    def latest(self, person: Person) -> list[dict[str, Any]]:
        with self._engine.connect() as conn:
            return access.asked_by(conn, person.who, 20)

    def foresee(self, person: Person, spec: ComparisonRequest) -> tuple[RequestCost, str | None]:
        """Return the cost, and the reason if the quota would reject it. Raises RequestError."""
        cost = foresee_cost(self._lab(), spec)
        used, most = self.used(person)
        return cost, quota.refusal(used, cost.testbox_seconds, most)

    def ask(self, person: Person, spec: ComparisonRequest) -> SubmittedComparison:
        """Queue the request. Raises RequestError, OverQuota."""
        with self._one_at_a_time:
            cost, refused = self.foresee(person, spec)
            if refused is not None:
                raise OverQuota(refused)
            with self._engine.connect() as conn:
                before = access.latest_comparison(conn)
            number = ask_comparison(self._lab(), spec)
            new = number > before
            with self._engine.begin() as conn:
                access.note_asked(conn, person, number, cost.testbox_seconds if new else 0.0)
        return SubmittedComparison(id=ids.show("comparison", number), new=new, cost=cost)

    def latest_experiments(self, person: Person) -> list[dict[str, Any]]:
        with self._engine.connect() as conn:
            return access.experiments_asked_by(conn, person.who, 20)

    def plan(self, person: Person, spec: ExperimentRequest) -> tuple[Planned, str | None]:
        """Return the plan, and the reason if the quota would reject it. Raises RequestError."""
        planned = plan_asked(self._lab(), spec)
        used, most = self.used(person)
        return planned, quota.refusal(used, planned.cost.testbox_seconds, most)

    def plan_facts(self, planned: Planned) -> dict[str, Any]:
        return plan_json(planned)

    def ask_experiment(self, person: Person, spec: ExperimentRequest) -> SubmittedExperiment:
        """Queue the request. Raises RequestError, OverQuota."""
        with self._one_at_a_time:
            planned, refused = self.plan(person, spec)
            if refused is not None:
                raise OverQuota(refused)
            with self._engine.connect() as conn:
                before = access.latest_comparison(conn)
            number = ask_experiment(self._lab(), spec)
            new = number > before
            seconds = planned.cost.testbox_seconds if new else 0.0
            with self._engine.begin() as conn:
                access.note_asked(conn, person, number, seconds, "experiment")
        return SubmittedExperiment(id=ids.show("experiment", number), new=new, planned=planned)
