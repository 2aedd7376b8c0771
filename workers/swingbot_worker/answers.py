"""Answers to slow questions about files of this host, such as the libraries of a program.

An answer is kept as long as the files that it depends on are the same by device, inode, size and
times. It is a cache: a missing or damaged entry is asked again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from swingbot_worker import process

KEPT: Final = 500  # answers of some 100 bytes; a boot asks for about ten
# A file that changes again within the clock tick of its time stamp would look unchanged.
_SETTLED_NS: Final = 2_000_000_000
_COMMAND_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers that are kept in `cache`/answers."""

    cache: Path

    def of_command(
        self, argv: Sequence[str | Path], files: Iterable[Path], *, good: Collection[int] = (0,)
    ) -> process.Output:
        """Run `argv` unless its answer is known; it depends on `files` alone.

        Only an answer with an exit status of `good` is kept. Raises InfraError if the program is
        not installed.
        """
        last: list[process.Output] = []

        def ask() -> list[Any] | None:
            done = process.output(argv, timeout=_COMMAND_SECONDS)
            last.append(done)
            return [done.rc, done.text] if done.rc in good and not done.timed_out else None

        answer = self.of(["command", *map(str, argv)], files, ask, _is_exit_and_text)
        if last:
            return last[0]
        rc, text = answer
        return process.Output(rc=rc, seconds=0.0, timed_out=False, text=text)

    def of(
        self,
        question: Sequence[str],
        files: Iterable[Path],
        ask: Callable[[], Any],
        valid: Callable[[Any], bool],
    ) -> Any:
        """Return the kept answer to `question` about `files`, or that of `ask`.

        An answer is a JSON value; None is not kept. One that is not `valid`, perhaps of another
        version of this program, is asked again.
        """
        paths = sorted({str(path) for path in files})
        before = _stamps(paths)
        file = self._file(question, before)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            answer = json.loads(file.read_text())["answer"]
            if valid(answer):
                os.utime(file)
                return answer
        answer = ask()
        if answer is not None and _stamps(paths) == before and _settled(before):
            with contextlib.suppress(OSError):
                self._keep(file, answer)
        return answer

    def _file(self, question: Sequence[str], stamps: _Stamps) -> Path:
        text = json.dumps([list(question), stamps])
        return self.cache / "answers" / hashlib.sha256(text.encode()).hexdigest()

    def _keep(self, file: Path, answer: Any) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{secrets.token_hex(8)}")
        try:
            temporary.write_text(json.dumps({"answer": answer}))
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
        newest_last = sorted(file.parent.iterdir(), key=lambda one: one.stat().st_mtime)
        for old in newest_last[:-KEPT]:
            old.unlink(missing_ok=True)


def _is_exit_and_text(answer: Any) -> bool:
    return isinstance(answer, list) and [type(part) for part in answer] == [int, str]


_Stamps = list[tuple[str, list[int] | None]]


def _stamps(paths: Iterable[str]) -> _Stamps:
    return [(path, _stamp(path)) for path in paths]


def _stamp(path: str) -> list[int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    ]


def _settled(stamps: _Stamps) -> bool:
    """Return whether no file changed just now, nor has a time of change in the future."""
    now = time.time_ns()
    return all(stamp is None or stamp[-1] < now - _SETTLED_NS for _, stamp in stamps)
