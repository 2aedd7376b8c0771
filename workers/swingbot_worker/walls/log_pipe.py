"""Copy the output of a sandbox to its log.

The sandbox has the end of a pipe and not the file, so it cannot shorten or overwrite what is
already in the log.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_CHUNK = 65_536
_JOIN_SECONDS = 10.0


@contextlib.contextmanager
def copied_to(log: Path | None, most: int) -> Iterator[int]:
    """Yield the descriptor to write to; at most `most` bytes are appended to `log`.

    Further output is discarded. Everything that was written is in the log when the context ends,
    provided that no process holds the descriptor any longer.
    """
    if log is None:
        with open(os.devnull, "ab") as nowhere:
            yield nowhere.fileno()
        return
    source, sink = os.pipe2(os.O_CLOEXEC)
    thread = threading.Thread(target=_copy, args=(source, log, most), name="build log", daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        os.close(sink)
        thread.join(_JOIN_SECONDS)


def _copy(source: int, log: Path, most: int) -> None:
    with open(log, "ab", buffering=0) as file:
        try:
            while data := os.read(source, _CHUNK):
                file.write(data[:most])
                most -= min(most, len(data))
        finally:
            os.close(source)
