"""What the child does that reads the results of a boot: facts, and the status of each run."""

from __future__ import annotations

from typing import Any

from swingbot_jobs import codec
from swingbot_jobs.contract.fact_sheet import facts_of
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.limits import REASON_CHARACTERS
from swingbot_jobs.reading.parse import read_results
from swingbot_worker.readers.limited_child import serve
from swingbot_worker.readers.run_status import runs_of, settings_read


def main() -> None:
    """Do one task and exit."""
    serve(_do)


def _do(task: dict[str, Any]) -> dict[str, Any]:
    with open(task["results"], "rb") as tar:
        results = read_results(tar)
    jobs = [codec.typed(UnitJob, job) for job in task["unit_jobs"]]
    reported = facts_of(results.facts)
    facts = {**reported, **task["facts"], **settings_read(jobs, results)}
    return {
        "facts": {name: fact for name, fact in facts.items() if fact is not None},
        "runs": runs_of(jobs, results, facts),
        "marks": {name: results.facts.get(name, "")[:REASON_CHARACTERS] for name in task["marks"]},
    }
