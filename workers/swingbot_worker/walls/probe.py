"""Which walls stand on this host: tried, not guessed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from swingbot_jobs.contract.trust import Trust
from swingbot_worker import InfraError
from swingbot_worker.walls import seccomp
from swingbot_worker.walls.argv import USERS, View, Way
from swingbot_worker.walls.limits import Limits, limits_of
from swingbot_worker.walls.sandbox import Sandbox, SandboxedCommand, owned

SWITCH = "SWINGBOT_BUILD_WALLS"
_SECONDS = 30.0
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_NEEDED = {
    "bwrap": "bubblewrap",
    "prlimit": "util-linux",
    "choom": "util-linux",
    "setpriv": "util-linux",
    "bash": "bash",
    "du": "coreutils",
    "find": "findutils",
}
# Each line is the word of a wall, and then what was seen of it from inside. $1: a directory that is read-only, $2: one that is ours.
_LOOK = """
echo user $(id -u)
for p in /root /home /var /etc/shadow /etc/swingbot /run /sys /boot /mnt; do [ -e $p ] && echo files $p is in sight; done
touch "$1/x" 2>/dev/null && echo files the source can be written to
touch /usr/x 2>/dev/null && echo files /usr can be written to
touch "$2/x" || echo files the object directory cannot be written to
awk 'BEGIN { }' || echo files programs behind links in /etc/alternatives cannot be run
touch /tmp/x || echo files /tmp cannot be written to
grep -o '^ *[^ :|]*:' /proc/net/dev | grep -v lo: | while read -r n; do echo network the interface $n is in sight; done
n=0; for p in /proc/[0-9]*; do n=$((n + 1)); done; [ $n -lt 10 ] || echo processes $n processes are in sight
kill -0 $3 2>/dev/null && echo processes process $3 outside can be signalled
unshare --user true 2>/dev/null && echo calls new user namespaces can be made
unshare --mount true 2>/dev/null && echo calls new mount namespaces can be made
[ "$(ulimit -H -u)" = $4 ] || echo count "the limit is $(ulimit -H -u)"
[ "$(ulimit -H -v)" = $(($5 / 1024)) ] || echo memory "the limit of a process is $(ulimit -H -v) kB"
[ "$(ulimit -H -f)" != unlimited ] || echo disk files have no limit
[ "$(df --output=size -B1 /tmp | tail -n 1)" -le $6 ] || echo disk /tmp has no limit
echo end
"""
# wall -> what it is
WALLS = {
    "user": "runs as a user of its own",
    "files": "sees the system's programs, its source (read-only), its objects and its own /tmp; no home, settings, keys or other builds",
    "network": "has no network, not even this host's own addresses",
    "processes": "sees and signals no process but its own; all of them end with it",
    "calls": "has no system calls that make namespaces, mount, trace, or open other sockets than its own",
    "memory": "uses no more memory than it may, all its processes together",
    "count": "has no more processes than it may",
    "disk": "writes no more than it may",
    "time": "takes no longer than its order says",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """One wall: does it stand on this host, and how, or why not."""

    name: str
    stands: bool
    why: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What this host offers. `sandbox` is there if and only if every wall stands."""

    walls: tuple[Wall, ...]
    sandbox: Sandbox | None


def missing(walls: Sequence[Wall]) -> str:
    """The walls that do not stand, each with its reason; empty if all do."""
    return "; ".join(f"{wall.name}: {wall.why}" for wall in walls if not wall.stands)


def probe() -> Probe:
    """Try every wall. Cheap: after the first time in this process the answer is remembered. Raises InfraError if a setting is wrong."""
    switch = os.environ.get(SWITCH) or "on"
    if switch not in ("on", "off"):
        raise InfraError(f"{SWITCH} is {switch[:40]!r}; set it to on or off.")
    return _none(f"switched off by {SWITCH}") if switch == "off" else _probe(limits_of())


@cache
def _probe(limits: Limits) -> Probe:
    lacking = sorted(
        {
            package
            for program, package in _NEEDED.items()
            if shutil.which(program, path=_ENVIRONMENT["PATH"]) is None
        }
    )
    if lacking:
        return _none(f"{' and '.join(lacking)} not installed (apt-get install {' '.join(lacking)})")
    if not seccomp.available():
        return _none("system calls are filtered on x86-64 only")
    ways: tuple[Way, ...] = ("root", "root in a chroot") if os.geteuid() == 0 else ("user",)
    reasons = []
    for way in ways:
        try:
            return _looked(Sandbox(way=way, limits=limits), way)
        except InfraError as error:
            reasons.append(str(error))
    return _none(" ".join(reasons))


def _looked(sandbox: Sandbox, way: Way) -> Probe:
    found: dict[str, str] = {}
    for trust in USERS:
        found = {**_seen(sandbox, way, trust), **found}
    walls = tuple(
        Wall(name=name, stands=name not in found, why=found.get(name, words))
        for name, words in WALLS.items()
    )
    return Probe(walls=walls, sandbox=sandbox if all(wall.stands for wall in walls) else None)


def _seen(sandbox: Sandbox, way: Way, trust: Trust) -> dict[str, str]:
    """Wall -> what is wrong with it. Raises InfraError if there is nothing to be seen."""
    with tempfile.TemporaryDirectory(prefix="swingbot-walls-") as made:
        source, objects, log = (Path(made) / name for name in ("source", "objects", "log"))
        source.mkdir(mode=0o755)
        objects.mkdir()
        owned(objects, way, trust)
        view = View(
            trust=trust, read_only=(source,), writable=((objects, objects),), directory=source
        )
        told = [
            str(source),
            str(objects),
            str(os.getpid()),
            str(sandbox.limits.processes),
            str(sandbox.limits.memory),
            str(sandbox.limits.tmp),
        ]
        command = SandboxedCommand(
            argv=["bash", "-c", _LOOK, "bash", *told],
            view=view,
            env=_ENVIRONMENT,
            log=log,
            measured=objects,
        )
        done = sandbox.run(command, timeout=_SECONDS)
        lines = [line.partition(" ")[::2] for line in log.read_text(errors="replace").splitlines()]
    if done.rc != 0 or ("end", "") not in lines:
        raise InfraError(f"The look around behind the walls ended with {done.rc}.")
    found = {word: text[:200] for word, text in reversed(lines) if word in WALLS}
    if found.pop("user", "") != str(USERS[trust]):
        found["user"] = "runs as another user"
    return found


def _none(why: str) -> Probe:
    return Probe(
        walls=tuple(Wall(name=name, stands=False, why=why) for name in WALLS), sandbox=None
    )
