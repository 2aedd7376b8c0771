"""A build keeps memory that no process is charged with: data in sockets, inodes of a tmpfs."""

from __future__ import annotations

from tests.attack.hostile_build import attack, stopped
from tests.attack.target import Result, Target

NAME = "build-memory"
WANTED = "stopped builds that name SWINGBOT_BUILD_MEMORY_MB, at 512 MB at most"

# Sizes for a limit of 512 MB; every script would be built if nothing held it.
_SOCKETS = """
import os, socket
blob = b"x" * 65536
children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        held, pairs = 0, []
        while held < 450 << 20:
            pair = socket.socketpair()
            for end in pair:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                end.setblocking(False)
                try:
                    while True:
                        held += end.send(blob)
                except BlockingIOError:
                    pass
            pairs.append(pair)
        print("ATTACK held", held, flush=True)
        os.read(socket.socketpair()[0].fileno(), 1)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
"""
_INODES = """
for directory in range(60):
    os.mkdir(f"/tmp/{directory}")
    for number in range(10000):
        os.close(os.open(f"/tmp/{directory}/{'n' * 200}{number}", os.O_CREAT | os.O_RDWR))
print("ATTACK created", flush=True)
"""


def run(target: Target) -> Result:
    """Try to keep 900 MB in sockets, then 600 000 inodes, with a limit of 512 MB."""
    settings = {"SWINGBOT_BUILD_MEMORY_MB": "512"}
    results = [
        stopped(
            attack("/usr/bin/python3 ../a.py; true\n", python=python, settings=settings),
            "SWINGBOT_BUILD_MEMORY_MB",
            memory_mb=513,
        )
        for python in (_SOCKETS, f"import os\n{_INODES}")
    ]
    return Result(
        line="; ".join(result.line for result in results),
        held=all(result.held for result in results),
    )
