"""Read what is not trusted in a child process with limits of memory and time.

One child serves many requests; its processor time counts for the thread that asks. One that
exceeded a limit, or has grown, is replaced before the next. Its answer is data: its length is
limited, and whoever asks checks its form.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any, Final

from swingbot.adapters import process, progress
from swingbot.adapters.reader_child import LENGTH, MIB, READY, receive
from swingbot.service.ports.results import ReadingStopped, TooMuchReading, Unreadable

START_SECONDS: Final = 60.0


class ReaderProcess:
    """The child `module` of this package, with `words` after its limits; safe to use by one thread
    at a time.

    It has `seconds` of processor time for a request, which may take `patience` times as long.
    """

    def __init__(
        self,
        module: str,
        words: Sequence[str] = (),
        *,
        memory_bytes: int,
        seconds: float,
        answer_bytes: int,
        patience: float = 1.0,
    ) -> None:
        self._patience = patience * seconds
        self._seconds, self._answer_bytes = seconds, answer_bytes
        numbers = map(str, (memory_bytes, math.ceil(seconds), answer_bytes))
        python = (sys.executable, "-B", "-P", "-m", f"swingbot.adapters.{module}")
        self._argv = [*python, *numbers, *words]
        self._child: process.Child | None = None
        self._connection: socket.socket | None = None

    def ask(self, request: Mapping[str, Any], file: IO[bytes]) -> dict[str, Any]:
        """Return the answer about a file that has a descriptor. Raises Unreadable."""
        with progress.waiting(START_SECONDS + self._patience):
            try:
                answer = self._ask(json.dumps(request).encode(), file)
            except (OSError, EOFError) as error:
                raise self._ended(error) from None
            finally:
                if self._child is not None:
                    self._child.count()
        if answer.get("grown", True):
            self.close()
        if "refused" in answer:
            raise Unreadable(str(answer["refused"])[:300])
        return answer

    def close(self) -> None:
        """End the child, if there is one."""
        if self._connection is not None:
            self._connection.close()
        if self._child is not None:
            self._child.end()
        self._child = self._connection = None

    def _ask(self, request: bytes, plain: IO[bytes]) -> dict[str, Any]:
        connection = self._connected()
        connection.settimeout(self._patience)
        socket.send_fds(connection, [LENGTH.pack(len(request))], [plain.fileno()])
        connection.sendall(request)
        (length,) = LENGTH.unpack(receive(connection, LENGTH.size))
        if length > self._answer_bytes:
            return {"refused": f"more than {self._answer_bytes // MIB} MiB was read from them"}
        answer = json.loads(receive(connection, length))
        return answer if isinstance(answer, dict) else {}

    def _connected(self) -> socket.socket:
        if self._connection is None or self._child is None or self._child.ended() is not None:
            self.close()
            self._connection, far = socket.socketpair()
            with far:
                paths = os.pathsep.join(filter(None, sys.path))
                self._child = process.Child(
                    self._argv,
                    stdin=far.fileno(),
                    env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "PYTHONPATH": paths},
                )
            self._connection.settimeout(START_SECONDS)
            receive(self._connection, len(READY))
        return self._connection

    def _ended(self, error: Exception) -> ReadingStopped:
        """Say why there was no answer, and end the child."""
        child = self._child
        status = child.ended(1.0) if child is not None else None
        self.close()
        if status == -signal.SIGXCPU:
            return TooMuchReading(f"reading them takes more than {self._seconds:.0f} s")
        if isinstance(error, TimeoutError):
            return ReadingStopped(f"reading them took longer than {self._patience:.0f} s")
        return ReadingStopped(f"their reader ended with status {status}")


def copy_most(file: IO[bytes], to: IO[bytes], most: int) -> int:
    """Copy at most `most` bytes of a file, which may be compressed where it is stored, to one with
    a descriptor; return how many.
    """
    left = most
    while left and (chunk := file.read(min(left, MIB))):
        to.write(chunk)
        left -= len(chunk)
    return most - left
