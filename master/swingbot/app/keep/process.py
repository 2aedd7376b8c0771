"""Run a database server for the duration of a restore."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class DidNotStart(Exception):
    """The server did not start; the message names its log."""


@contextmanager
def running(
    argv: Sequence[str],
    *,
    identity: Mapping[str, Any],
    directory: Path,
    log: Path,
    answers: Callable[[], bool],
    seconds: float,
) -> Iterator[None]:
    """Run the server `argv` until the block ends. Raises DidNotStart.

    `identity`: arguments of subprocess.Popen() that say as which user.
    """
    with log.open("ab") as sink:
        child = subprocess.Popen(
            argv,
            **identity,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + seconds
        while not answers():
            if child.poll() is not None or time.monotonic() > end:
                raise DidNotStart(f"the embedded database did not start; see {log}")
            time.sleep(0.05)
        yield
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)  # PostgreSQL's fast, orderly shutdown
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
