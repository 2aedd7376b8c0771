"""Health check of a container; exit status 0 means healthy.

Usage: `health.py url URL`, `health.py connected PORT` or `health.py listens PORT`. Uses only the
standard library, because it runs in every container twice a minute.
"""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path

ESTABLISHED, LISTENING = "01", "0A"  # include/net/tcp_states.h


def url(address: str) -> bool:
    """Whether `address` returns a success status; never through a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=5) as answer:
        return bool(200 <= answer.status < 300)


def connected(port: int, tables: str) -> bool:
    """Whether a TCP connection to a remote `port` is established, from the text of /proc/net/tcp.

    Format: proc_net_tcp.rst in the kernel's documentation.
    """
    rows = [line.split() for line in tables.splitlines()]
    return any(
        len(row) > 3 and row[3] == ESTABLISHED and row[2].endswith(f":{port:04X}") for row in rows
    )


def listens(port: int, tables: str) -> bool:
    """Whether a local socket listens on `port`, from the same text.

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
