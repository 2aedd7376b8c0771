"""What runs beside the driver: the command that prints a console.

It ends with us, as all that the worker starts.
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
    """Run `argv` while the block runs, stdout into `sink` and stderr into `<sink>.err`; its whole
    process group is ended then.

    Its stdin stays open and empty: console programs end with their stdin. Raises InfraError if the
    program is not there.
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
