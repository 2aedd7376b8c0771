"""Parse results of boots in a child process with limits of memory and time.

A kernel under test wrote them, so reading them may take any amount of either. One child serves
many boots. One that exceeded a limit, or has grown, is replaced before the next. Its answer is
data: its form is checked, and its length is limited.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final, get_args

from swingbot.adapters import limits, process, progress
from swingbot.adapters.reader_child import LENGTH, MIB, READY, receive
from swingbot.service.ports.results import Unreadable
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.limits import RESULT_ARCHIVE_BYTES
from swingbot_jobs.reading.result import ParsedRun, RunStatus

START_SECONDS: Final = 60.0
_TIMES_EXCEEDED: Final = (-signal.SIGXCPU, -signal.SIGKILL)


class ChildResultReader:
    """Reads with the programs in the directory `programs`; safe to use by one thread at a time."""

    def __init__(
        self,
        programs: Path,
        *,
        memory_bytes: int = limits.RESULT_READER_BYTES,
        seconds: float = limits.RESULT_READER_SECONDS,
    ) -> None:
        self._programs, self._memory, self._seconds = programs, memory_bytes, seconds
        self._child: process.Child | None = None
        self._connection: socket.socket | None = None

    def parse(
        self,
        tar: IO[bytes],
        unit_jobs: Sequence[UnitJob],
        facts: Mapping[str, Any] | None,
    ) -> list[ParsedRun]:
        """Return every expected run of a boot, in order. Raises Unreadable if that exceeds a limit.

        `facts` are those of the outcome.
        """
        request = {"unit_jobs": codec.plain(unit_jobs), "facts": facts}
        with ExitStack() as stack, progress.waiting(START_SECONDS + self._seconds):
            plain = stack.enter_context(tempfile.TemporaryFile())
            _copy(tar, plain)
            try:
                answer = self._ask(json.dumps(request).encode(), plain)
            except (OSError, EOFError) as error:
                raise Unreadable(self._ended(error)) from None
        if "refused" in answer:
            self.close()
            raise Unreadable(str(answer["refused"])[:300])
        if answer.get("grown"):
            self.close()
        return _runs(answer.get("runs"), unit_jobs)

    def close(self) -> None:
        """End the child, if there is one."""
        if self._connection is not None:
            self._connection.close()
        if self._child is not None:
            self._child.end()
        self._child = self._connection = None

    def _ask(self, request: bytes, plain: IO[bytes]) -> dict[str, Any]:
        connection = self._connected()
        connection.settimeout(self._seconds)
        socket.send_fds(connection, [LENGTH.pack(len(request))], [plain.fileno()])
        connection.sendall(request)
        (length,) = LENGTH.unpack(receive(connection, LENGTH.size))
        if length > limits.RESULT_ANSWER_BYTES:
            self.close()
            return {
                "refused": f"they have more than {limits.RESULT_ANSWER_BYTES // MIB} MiB of samples"
            }
        answer = json.loads(receive(connection, length))
        return answer if isinstance(answer, dict) else {}

    def _connected(self) -> socket.socket:
        if self._connection is None or self._child is None or self._child.ended() is not None:
            self.close()
            self._connection, far = socket.socketpair()
            with far:
                argv = [sys.executable, "-B", "-P", "-m", "swingbot.adapters.reader_child"]
                limits = [str(self._memory), str(math.ceil(self._seconds))]
                paths = os.pathsep.join(filter(None, sys.path))
                self._child = process.Child(
                    [*argv, str(self._programs), *limits],
                    stdin=far.fileno(),
                    env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "PYTHONPATH": paths},
                )
            self._connection.settimeout(START_SECONDS)
            receive(self._connection, len(READY))
        return self._connection

    def _ended(self, error: Exception) -> str:
        """Say why there was no answer, and end the child."""
        child = self._child
        status = child.ended(1.0) if child is not None else None
        self.close()
        if isinstance(error, TimeoutError) or status in _TIMES_EXCEEDED:
            return f"reading them took longer than {self._seconds:.0f} s"
        return f"their reader ended with status {status}"


def _copy(tar: IO[bytes], file: IO[bytes]) -> None:
    """Copy `tar`, which may be compressed where it is stored, to a file with a descriptor.

    One byte above the limit is enough for the reader to refuse it.
    """
    left = RESULT_ARCHIVE_BYTES + 1
    while left and (chunk := tar.read(min(left, MIB))):
        file.write(chunk)
        left -= len(chunk)
    file.seek(0)


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
    )
