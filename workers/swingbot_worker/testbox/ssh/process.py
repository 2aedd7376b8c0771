"""Run the console command in the background while the driver works.

The command is killed when the worker exits, as are all processes that the worker starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from swingbot_worker import process


@contextlib.contextmanager
def beside(argv: Sequence[str], sink: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `argv` during the `with` block, then kill its process group.

    Appends stdout to `sink` and stderr to `<sink>.err`. Stdin stays open and empty, because console
    programs exit at the end of their stdin. Raises InfraError if the program does not exist.
    """
    with sink.open("ab") as out, sink.with_suffix(".err").open("ab") as err:
        child = subprocess.Popen(
            process.tied_to_us(argv),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if child.stdin is not None:
            child.stdin.close()


def exit_status(child: subprocess.Popen[bytes], wait: float) -> int | None:
    """Return the exit status of a program; None if it still runs after `wait` seconds."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(wait)
    return child.poll()
