"""Parse results of boots in a child process, because a kernel under test wrote them: reading them
may take any amount of memory and time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, get_args

from swingbot.adapters import limits
from swingbot.adapters.limited_reader import ReaderProcess, copy_most
from swingbot.service.ports.results import Unreadable
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.limits import RESULT_ARCHIVE_BYTES
from swingbot_jobs.reading.result import ParsedRun, RunStatus


class ChildResultReader(ReaderProcess):
    """Reads with the programs in the directory `programs`."""

    def __init__(self, programs: Path, *, seconds: float = limits.RESULT_READER_SECONDS) -> None:
        super().__init__(
            "result_child",
            [str(programs)],
            memory_bytes=limits.RESULT_READER_BYTES,
            seconds=seconds,
            answer_bytes=limits.RESULT_ANSWER_BYTES,
        )

    def parse(
        self,
        tar: IO[bytes],
        unit_jobs: Sequence[UnitJob],
        facts: Mapping[str, Any] | None,
    ) -> list[ParsedRun]:
        """Return every expected run of a boot, in order. Raises Unreadable, or
        ReadingStopped if a limit ended the reader.

        `facts` are those of the outcome.
        """
        request = {"unit_jobs": codec.plain(unit_jobs), "facts": facts}
        with tempfile.TemporaryFile() as plain:
            copy_most(tar, plain, RESULT_ARCHIVE_BYTES + 1)  # one more, and it is refused
            plain.seek(0)
            return _runs(self.ask(request, plain).get("runs"), unit_jobs)


def _runs(answer: object, unit_jobs: Iterable[UnitJob]) -> list[ParsedRun]:
    """Return the runs that the child names. Raises Unreadable unless they are the expected ones."""
    expected = [(job, number) for job in unit_jobs for number in job.numbers]
    rows = answer if isinstance(answer, list) else []
    if len(rows) != len(expected):
        raise Unreadable("their reader gave an invalid answer")
    return [_run(row, job, number) for row, (job, number) in zip(rows, expected, strict=True)]


def _run(row: Any, job: UnitJob, number: int) -> ParsedRun:
    valid = isinstance(row, dict) and row.get("status") in get_args(RunStatus)
    samples = row.get("samples") if valid else None
    if not isinstance(samples, dict) or not all(
        isinstance(values, list) and all(type(value) is float for value in values)
        for values in samples.values()
    ):
        raise Unreadable("their reader gave an invalid answer")
    reason, seconds = row.get("reason"), row.get("seconds")
    return ParsedRun(
        unit_job=job.name,
        number=number,
        status=row["status"],
        reason=str(reason)[:2000] if reason is not None else None,
        samples=samples,
        seconds=seconds if isinstance(seconds, float) else None,
        monitor=job.monitor_of(number),
        limited=row.get("limited") is True,
    )
