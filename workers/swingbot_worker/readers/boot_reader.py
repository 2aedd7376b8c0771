"""Read the results of a boot in a child process with limits of memory and time, behind the walls.

The kernel under test wrote them. The master reads them again, in a child of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from swingbot_jobs import codec
from swingbot_jobs.contract.facts import Value
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.limits import REASON_CHARACTERS
from swingbot_jobs.reading.result import Results
from swingbot_worker import InfraError, LimitReached, limits, walls
from swingbot_worker.readers.limited_reader import CannotRead, LimitedReader, ReaderStopped
from swingbot_worker.readers.run_status import runs_of

_MODULE: Final = "swingbot_worker.readers.boot_task"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestReport:
    """What a boot reported: its facts, its runs as in an outcome, and the `marks` asked for.

    The facts include those of the driver, which take precedence.
    """

    facts: Mapping[str, Value]
    runs: Sequence[Mapping[str, Any]]
    marks: Mapping[str, str]


def read_boot(
    results: Path,
    *,
    unit_jobs: Sequence[UnitJob] = (),
    facts: Mapping[str, Value] | None = None,
    marks: Sequence[str] = (),
    memory_bytes: int = limits.RESULTS_READER_BYTES,
    seconds: float = limits.RESULTS_READER_SECONDS,
) -> GuestReport:
    """Read `results`, which may be missing. `facts` are those of the driver.

    `marks` are facts that are returned as they were sent. Results that cannot be read count as
    missing, and the runs say why. Raises InfraError.
    """
    ours = dict(facts or {})
    if not results.is_file():
        return _nothing(unit_jobs, ours)
    reader = LimitedReader(
        module=_MODULE,
        sandbox=None,
        memory_bytes=memory_bytes,
        seconds=seconds,
        cpu_seconds=limits.RESULTS_READER_CPU_SECONDS,
    )
    with results.open("rb") as file:
        task = {
            "results": file.fileno(),
            "unit_jobs": codec.plain(unit_jobs),
            "facts": ours,
            "marks": list(marks),
        }
        try:
            return _checked(_answer(reader, task, file), unit_jobs)
        except ReaderStopped as error:
            raise LimitReached(f"The results could not be read: {error}.") from None
        except CannotRead as error:
            return _nothing(unit_jobs, ours, f"the results could not be read: {error}")


def _answer(reader: LimitedReader, task: Mapping[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """Return the child's answer, behind the best walls that this host has."""
    for sandbox in walls.untested():
        try:
            return replace(reader, sandbox=sandbox).answer(task, [file])
        except walls.NoWalls:
            continue
    return reader.answer(task, [file])


def _nothing(
    unit_jobs: Sequence[UnitJob], facts: Mapping[str, Value], why: str | None = None
) -> GuestReport:
    runs = runs_of(unit_jobs, Results(runs={}), facts)
    if why is not None:
        runs = [run | {"reason": why[:REASON_CHARACTERS]} for run in runs]
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return GuestReport(facts=known, runs=runs, marks={})


def _checked(answer: Mapping[str, Any], unit_jobs: Sequence[UnitJob]) -> GuestReport:
    """Return the answer, whose form is checked; the outcome's schema has the limits of its parts.

    Raises InfraError.
    """
    facts, runs, marks = (answer.get(name) for name in ("facts", "runs", "marks"))
    if (
        not isinstance(facts, dict)
        or not all(isinstance(fact, str | int | float | bool) for fact in facts.values())
        or not isinstance(runs, list)
        or not all(isinstance(run, dict) for run in runs)
        or [(run.get("unit_job"), run.get("number")) for run in runs]
        != [(job.name, number) for job in unit_jobs for number in job.numbers]
        or not isinstance(marks, dict)
        or not all(isinstance(mark, str) for mark in marks.values())
    ):
        raise InfraError("The reader of the boot's results gave an invalid answer.")
    return GuestReport(facts=facts, runs=runs, marks=marks)
