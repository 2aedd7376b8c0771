"""Health check of a container; exit status 0 means healthy.

Usage: `health.py url URL`, `health.py connected PORT`, `health.py listens PORT` or
`health.py beats FILE [WORD...]`. `beats` first looks at the heartbeat in FILE: a process that wrote
none for 90 s hangs and is killed, and the engine restarts the container; then it checks WORD...
Uses only the standard library, because it runs in every container twice a minute.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import urllib.request
from pathlib import Path

HUNG_SECONDS = 90.0  # as health.restart_seconds
ESTABLISHED, LISTENING = "01", "0A"  # include/net/tcp_states.h


def url(address: str) -> bool:
    """Return True if `address` returns a success status; never through a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=5) as answer:
        return bool(200 <= answer.status < 300)


def beats(file: Path) -> bool:
    """Return True if the process of a heartbeat responds; kills it if it hangs.

    Format: swingbot_jobs/contract/heartbeat.py. Without a file, the process is starting.
    """
    try:
        monotonic, pid = file.read_text().split()[:2]
    except (FileNotFoundError, ValueError):
        return True
    # written in milliseconds, so a new one may lie a fraction of one ahead
    if -0.001 <= time.monotonic() - float(monotonic) < HUNG_SECONDS:
        return True
    if _started(int(pid)) > float(monotonic):
        return True  # the heartbeat is that of its predecessor
    os.kill(int(pid), signal.SIGKILL)
    file.unlink(missing_ok=True)
    print(f"process {pid} had no heartbeat for {HUNG_SECONDS:g} s and was killed")  # noqa: T201
    return False


def _started(pid: int) -> float:
    """Start of a process in seconds since the host's boot; infinite if it does not exist.

    Field 22 of proc_pid_stat(5).
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def connected(port: int, tables: str) -> bool:
    """Return True if a TCP connection to a remote `port` is established, from the text of
    /proc/net/tcp.

    Format: proc_net_tcp.rst in the kernel's documentation.
    """
    rows = [line.split() for line in tables.splitlines()]
    return any(
        len(row) > 3 and row[3] == ESTABLISHED and row[2].endswith(f":{port:04X}") for row in rows
    )


def listens(port: int, tables: str) -> bool:
    """Return True if a local socket listens on `port`, from the same text.

    A test connection would appear in the log of the service as a failed one.
    """
    rows = [line.split() for line in tables.splitlines()]
    return any(
        len(row) > 3 and row[3] == LISTENING and row[1].endswith(f":{port:04X}") for row in rows
    )


def _tables() -> str:
    return "".join(
        table.read_text()
        for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
        if table.exists()
    )


def main(words: list[str]) -> int:
    try:
        match words:
            case ["beats", file, *more]:
                return (main(more) if more else 0) if beats(Path(file)) else 1
            case ["url", address]:
                return 0 if url(address) else 1
            case ["connected", port]:
                return 0 if connected(int(port), _tables()) else 1
            case ["listens", port]:
                return 0 if listens(int(port), _tables()) else 1
    except OSError as error:
        print(error)  # noqa: T201 - the engine stores the output of a health check
        return 1
    print(__doc__)  # noqa: T201
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
