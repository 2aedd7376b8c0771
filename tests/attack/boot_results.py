"""A boot sends results that are small on disk and need more than a gigabyte to be read."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

from swingbot.adapters.result_reader import ChildResultReader
from swingbot.service.ports.results import Unreadable
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker import LimitReached
from swingbot_worker.readers.boot_reader import read_boot
from tests.attack.hostile_results import long_name
from tests.attack.target import Result, Target

NAME = "boot-results"
WANTED = "runs without a result; neither the service nor the worker grows by more than 100 MB"
_PROGRAMS = Path(__file__).resolve().parents[2] / "jobs" / "programs"
_JOB = UnitJob(name="j-1", program="page-fault", params={}, runs=1)


def run(target: Target) -> Result:
    """Read an archive with one name of 250 MB."""
    reader = ChildResultReader(_PROGRAMS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        file = long_name(Path(directory) / "results.tar")
        try:
            with file.open("rb") as tar:
                [parsed] = reader.parse(tar, [_JOB], None)
            ended = f"{parsed.status}: {parsed.reason}"
        except Unreadable as error:
            ended = f"failed: {error}"
        finally:
            reader.close()
        try:
            worker = read_boot(file, unit_jobs=[_JOB]).runs[0]["status"]
        except LimitReached:
            worker = "missing"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10
    held = not ended.startswith("ok") and worker == "missing" and grown < 100
    return Result(
        held=held,
        line=f"{ended}; for the worker {worker}; both together grew by {grown} MB",
    )
