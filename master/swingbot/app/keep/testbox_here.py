"""A testbox's document with what a boot of each shipped job costs on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from swingbot.app.mail import aa_rules
from swingbot.app.settings import Settings
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.moderation.aa_record import aa_record, why_restricted
from swingbot.core.plan.longest_boot import too_long
from swingbot.core.report.parts.machine import machine_line
from swingbot_db import read
from swingbot_db.engine import Connection
from swingbot_db.store.anchors import Anchors
from swingbot_db.store.boots import Boots
from swingbot_db.store.noise import Noise
from swingbot_jobs.contract.unit_job import spec_sha256
from swingbot_jobs.language.job_costs import JobCost, job_costs
from swingbot_jobs.language.job_files import read_all
from swingbot_jobs.language.program import Program, load_programs
from swingbot_jobs.testbox.counters import lacking_in_boot
from swingbot_jobs.testbox.file import load_all


def testbox_here(settings: Settings) -> Callable[[Connection, str], dict[str, Any]]:
    """Return the read model of a testbox, with `jobs`: what a boot of each shipped job costs, and
    `resolves`: what the boots of a tip show, `aa_record`: whether reports about it may go to
    anybody but mail.to, and `lacking_counters`: what its latest boot could not count.

    Testboxes, programs and jobs are read once, as everywhere in a running service.
    """
    jobs, rules = Path(settings.paths.jobs), aa_rules(settings.mail)

    @functools.cache
    def lab() -> KnownTestboxes:
        return KnownTestboxes(
            present=load_all(Path(settings.paths.workers) / "testboxes"),
            boot_ceiling=settings.boot.deadline_seconds,
        )

    @functools.cache
    def programs() -> Mapping[str, Program]:
        return load_programs(jobs / "programs")

    @functools.cache
    def costs(name: str) -> list[JobCost]:
        if name not in lab().present:
            return []
        return job_costs(read_all(jobs), lab().present[name], programs())

    def resolves(conn: Connection, name: str, known: set[str]) -> list[dict[str, Any]]:
        # numpy, which those who only list testboxes have no use for
        from swingbot.service.table.detectable_effects import PlannedTable, effects_of_job

        noise, table = Noise(conn), PlannedTable(boots=settings.watch.boots)
        unit_jobs = {job.name: job for cost in costs(name) for job in cost.unit_jobs}
        return [
            {
                "unit_job": effect.unit_job,
                "metric": effect.metric,
                "boots": effect.boots,
                "resolves_pct": effect.resolves_pct,
                "words": effect.words,
            }
            for job in unit_jobs.values()
            if job.name in known
            for effect in effects_of_job(programs()[job.program], lab(), noise, name, job, table)
        ]

    def testbox(conn: Connection, name: str) -> dict[str, Any]:
        facts = read.testbox(conn, name)
        specs = {cost.job: spec_sha256(cost.unit_jobs) for cost in costs(name)}
        measured = read.mean_boot_seconds(conn, name, list(specs.values()))
        rows = []
        for cost in costs(name):
            own = measured.get(specs[cost.job])
            seconds = cost.seconds if own is None else own
            rows.append(
                {
                    "job": cost.job,
                    "runs": cost.runs,
                    "seconds": seconds,
                    "measured": own is not None,
                    "too_long": too_long(lab(), name, seconds),
                }
            )
        seen, anchors = Boots(conn).latest_facts(name), Anchors(conn).boots(name)
        record, present = aa_record(anchors), lab().present.get(name)
        restricted = (
            why_restricted(name, virtual=present.virtual, anchors=anchors, rules=rules)
            if present is not None
            else ""
        )
        return facts | {
            "jobs": rows,
            "resolves": resolves(conn, name, {row["unit_job"] for row in facts["noise"]}),
            "aa_record": {
                "pairs": record.pairs,
                "days": record.days,
                "since": None if record.anchor is None else f"c{record.anchor}",
                "restricted": restricted or None,
            },
            "machine": machine_line(facts["facts"].get("model", ""), seen),
            "lacking_counters": lacking_in_boot(str(seen.get("perf_events") or "")) or None,
        }

    return testbox
