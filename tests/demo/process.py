"""Where the demo's tree maker starts processes: git, and the unpacking of the source package."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

# Longer than a clean kernel build or a deep fetch takes on a busy machine; what takes longer hangs.
SECONDS = 3600.0


class CommandError(Exception):
    """A command failed; the message is the command and what it said."""


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for git: no settings of the user or the machine, which could change commit
    ids.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        **(extra or {}),
    }


def attempt(
    argv: Sequence[str | Path], *, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run `argv` to its end; answer exit status, stdout and stderr.

    CommandError if it does not end.
    """
    try:
        done = subprocess.run(
            [str(word) for word in argv],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=SECONDS,
            env=None if env is None else dict(env),
        )
    except subprocess.TimeoutExpired:
        raise CommandError(
            f"{' '.join(str(word) for word in argv[:6])} was stopped after {SECONDS:.0f} s"
        ) from None
    return (
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )


def run(
    argv: Sequence[str | Path], *, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run `argv`, answer its stdout; CommandError if it fails."""
    status, out, err = attempt(argv, stdin=stdin, env=env)
    if status != 0:
        said = (err or out).strip().splitlines()
        raise CommandError(
            f"{' '.join(str(word) for word in argv[:6])} ended with status {status}:"
            f" {said[-1] if said else 'it said nothing'}"
        )
    return out


class Pipe:
    """A process that is written to or read from; as a context it is waited for and must succeed."""

    def __init__(
        self, argv: Sequence[str | Path], *, feed: bool, env: Mapping[str, str] | None = None
    ) -> None:
        self.argv = [str(word) for word in argv]
        self._process = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            stdout=sys.stderr if feed else subprocess.PIPE,
            env=None if env is None else dict(env),
            bufsize=1 << 20,
        )
        stream = self._process.stdin if feed else self._process.stdout
        assert stream is not None
        self.stream: IO[bytes] = stream

    def __enter__(self) -> Pipe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: object
    ) -> None:
        if kind is not None:
            self._process.kill()
        with contextlib.suppress(BrokenPipeError):  # its exit status, below, says why
            self.stream.close()
        status = self._process.wait()
        if kind is None and status != 0:
            raise CommandError(f"{self.argv[0]} {self.argv[1]} ended with status {status}")
