"""Try each limit by its effect: allocate, fill, fork and connect behind the walls of this host.

The limits are small here, so that a trial takes little of the host; the way in which they are
imposed is that of builds.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swingbot_worker import InfraError
from swingbot_worker.walls.argv import View
from swingbot_worker.walls.cgroup import Parents
from swingbot_worker.walls.guard import OverLimit
from swingbot_worker.walls.limits import MIB, BuildLimits
from swingbot_worker.walls.sandbox import Sandbox, SandboxedCommand, owned

_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
# A busy host needs long to reach a limit; the trial ends as soon as it is reached.
_SECONDS = 180.0
_DEADLINE_SECONDS = 1.0
LIMITS: Final = BuildLimits(
    memory=96 * MIB,
    disk=32 * MIB,
    processes=64,
    file=1024 * MIB,
    tmp=64 * MIB,
    log=MIB,
    files=1_000_000,
)
# After each, something remains to be ended by the limit.
_ALLOCATE = """
for i in 1 2 3 4; do (x=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep 5) & done; wait; sleep 5
"""
_INODES = "cd /tmp && seq -f %0200g 1 300000 | xargs touch; sleep 5"
# Data in sockets belongs to no process.
_SOCKETS = """
/usr/bin/python3 -c '
import socket, time
pairs = []
for number in range(400):
    pair = socket.socketpair()
    pairs.append(pair)
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        end.setblocking(False)
        try:
            while True:
                end.send(bytes(65536))
        except BlockingIOError:
            pass
time.sleep(5)
'
"""
_FORK = "for i in $(seq 200); do sleep 5 & done; sleep 5"
_UNLINKED = 'exec 9>"$1/x"; rm "$1/x"; head -c 67108864 /dev/zero >&9; sleep 5'
_PRINT = "head -c 4000000 /dev/zero; sleep 5"
_CONNECT = "(exec 9<>/dev/tcp/127.0.0.1/$2) 2>/dev/null && echo connected; exit 0"
_STAY = "trap '' TERM INT HUP; sleep 60 & wait; sleep 60"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt to get past a wall, with its result; `held`: the wall stopped it."""

    wall: str
    attempt: str
    saw: str
    held: bool


# wall, attempt, script
OVER = (
    ("memory", "allocates 160 MB in four processes", _ALLOCATE),
    ("memory", "creates 300000 empty files in /tmp, which fill kernel memory", _INODES),
    ("memory", "leaves 160 MB of data in sockets", _SOCKETS),
    ("count", "starts 200 processes", _FORK),
    ("disk", "writes 64 MB to a file that it has deleted", _UNLINKED),
    ("disk", "prints 4 MB", _PRINT),
)


def trials(sandbox: Sandbox) -> list[Trial]:
    """Try all limits of `sandbox`, which probe returned. Raises InfraError."""
    small = replace(sandbox, limits=LIMITS)
    done = [
        _over(small, *attempt)
        for attempt in OVER
        if attempt[0] in sandbox.walls
        and (attempt[0] == "disk" or isinstance(sandbox.control, Parents))
    ]
    return [*done, _connects(small), _stays(small)]


def _over(sandbox: Sandbox, wall: str, attempt: str, script: str) -> Trial:
    with _places(sandbox) as (source, objects):
        try:
            timed_out = _run(sandbox, script, source, objects)
        except OverLimit as error:
            return Trial(wall=wall, attempt=attempt, saw=f"it {error}; it was stopped", held=True)
    saw = (
        f"it did not reach the limit in {_SECONDS:.0f} s; try again when this host is less busy"
        if timed_out
        else "it was not stopped"
    )
    return Trial(wall=wall, attempt=attempt, saw=saw, held=False)


def _connects(sandbox: Sandbox) -> Trial:
    with (
        _places(sandbox) as (source, objects),
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        server.setblocking(False)
        port = server.getsockname()[1]
        _run(sandbox, _CONNECT, source, objects, str(port))
        try:
            server.accept()[0].close()
            reached = True
        except BlockingIOError:
            reached = False
    return Trial(
        wall="network",
        attempt=f"connects to port {port} of this host",
        saw="it was connected" if reached else "no connection arrived",
        held=not reached,
    )


def _stays(sandbox: Sandbox) -> Trial:
    with _places(sandbox) as (source, objects):
        timed_out = _run(sandbox, _STAY, source, objects, seconds=_DEADLINE_SECONDS)
    return Trial(
        wall="time",
        attempt=f"ignores signals and stays for 60 s with a deadline of {_DEADLINE_SECONDS:.0f} s",
        saw="it was ended" if timed_out else "it was not ended",
        held=timed_out,
    )


@contextlib.contextmanager
def _places(sandbox: Sandbox) -> Iterator[tuple[Path, Path]]:
    """Yield a source and an object directory, the latter limited like that of a build."""
    with tempfile.TemporaryDirectory(prefix="swingbot-walls-") as work:
        source = Path(work) / "source"
        source.mkdir(mode=0o755)
        with sandbox.room(Path(work) / "objects") as objects:
            owned(objects, sandbox.way, "untrusted")
            yield source, objects


def _run(
    sandbox: Sandbox,
    script: str,
    source: Path,
    objects: Path,
    *arguments: str,
    seconds: float = _SECONDS,
) -> bool:
    """Run `script` with bash; its arguments are the object directory and `arguments`.

    Returns whether it was ended at `seconds`. Raises OverLimit or InfraError.
    """
    command = SandboxedCommand(
        argv=["bash", "-c", script, "bash", str(objects), *arguments],
        view=View(
            trust="untrusted",
            read_only=(source,),
            writable=((objects, objects),),
            directory=source,
        ),
        env=_ENVIRONMENT,
        log=source.parent / "log",
        measured=objects,
    )
    done = sandbox.run(command, timeout=seconds)
    if done.rc == 125:
        raise InfraError("The script of a trial could not enter its cgroup.")
    return done.timed_out
