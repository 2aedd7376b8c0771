"""Test which walls work on this host."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from swingbot_jobs.contract.trust import Trust
from swingbot_worker import InfraError
from swingbot_worker.walls import cgroup, disk, seccomp
from swingbot_worker.walls.argv import USERS, View, Way
from swingbot_worker.walls.limits import BuildLimits, limits_of
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
# Each line of output is the name of a wall and a defect seen from inside. $1 is a read-only
# directory, $2 a writable one.
_LOOK = """
echo user $(id -u)
for p in /root /home /var /etc/shadow /etc/swingbot /run /sys /boot /mnt; do
[ -e $p ] && echo files $p is visible
done
touch "$1/x" 2>/dev/null && echo files the source is writable
touch /usr/x 2>/dev/null && echo files /usr is writable
touch "$2/x" || echo files the object directory is not writable
awk 'BEGIN { }' || echo files programs in /etc/alternatives cannot be run
touch /tmp/x || echo files /tmp is not writable
grep -o '^ *[^ :|]*:' /proc/net/dev | grep -v lo: | while read -r n; do
echo network the interface $n is visible
done
n=0; for p in /proc/[0-9]*; do n=$((n + 1)); done
[ $n -lt 10 ] || echo processes $n processes are visible
kill -0 $3 2>/dev/null && echo processes can signal process $3 outside
unshare --user true 2>/dev/null && echo calls can create user namespaces
unshare --mount true 2>/dev/null && echo calls can create mount namespaces
(echo 0 >/proc/self/oom_score_adj) 2>/dev/null && echo memory can lower its oom_score_adj
[ "$(cat /proc/self/oom_score_adj)" = 1000 ] || echo memory is not what the host kills first
[ -s /proc/cmdline ] && echo files the boot parameters of the host are visible
[ "$(ulimit -H -f)" != unlimited ] || echo disk files have no limit
[ "$(df --output=size -B1 /tmp | tail -n 1)" -le $4 ] || echo disk /tmp has no limit
echo end
"""
# wall -> description
WALLS = {
    "user": "runs as a separate user",
    "files": "sees only system programs, its source (read-only), its objects and its own /tmp",
    "network": "has no network, not even this host's own addresses",
    "processes": "sees and signals only its own processes, which all end with it",
    "calls": "cannot create namespaces, mount, trace, or open sockets to the outside",
    "memory": "has a limit on all memory that it causes, that of the kernel included",
    "count": "has a limit on the number of its processes",
    "disk": "writes to a file system of limited size",
    "time": "ends at the deadline of its order",
}


# Walls without which trusted kernels are still built behind the others.
LIMITS = frozenset({"memory", "count", "disk"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """One wall: whether it works on this host (`stands`), and its description or defect."""

    name: str
    stands: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The result of the test.

    `sandbox` is set if every wall works that confines a build; those that limit what it uses can
    still be missing. Untrusted code requires all: `complete`.
    """

    walls: tuple[Wall, ...]
    sandbox: Sandbox | None

    @property
    def complete(self) -> bool:
        return self.sandbox is not None and all(wall.stands for wall in self.walls)


def missing(walls: Sequence[Wall]) -> str:
    """Return the walls that do not work with their defects, or an empty string."""
    return "; ".join(f"{wall.name}: {wall.why}" for wall in walls if not wall.stands)


def probe() -> Probe:
    """Test every wall, once per process. Raises InfraError for an invalid setting."""
    switch = os.environ.get(SWITCH) or "on"
    if switch not in ("on", "off"):
        raise InfraError(f"{SWITCH} is {switch[:40]!r}; set it to on or off.")
    return _none(f"switched off by {SWITCH}") if switch == "off" else _here(limits_of())


def _here(limits: BuildLimits) -> Probe:
    return _probe(limits, os.environ.get(disk.SETTING))


@cache
def _probe(limits: BuildLimits, _scratch: str | None) -> Probe:
    if why := _unavailable():
        return _none(why)
    reasons = []
    for way in _ways():
        try:
            return _looked(Sandbox(way=way, limits=limits), way)
        except InfraError as error:
            reasons.append(str(error))
    return _none(" ".join(reasons))


def _unavailable() -> str | None:
    lacking = sorted(
        {
            package
            for program, package in _NEEDED.items()
            if shutil.which(program, path=_ENVIRONMENT["PATH"]) is None
        }
    )
    if lacking:
        return f"{' and '.join(lacking)} not installed (apt-get install {' '.join(lacking)})"
    return None if seccomp.available() else "system call filters are supported only on x86-64"


def _ways() -> tuple[Way, ...]:
    return ("root", "root in a chroot") if os.geteuid() == 0 else ("user",)


def untested() -> tuple[Sandbox, ...]:
    """Return the sandboxes that may work on this host, best first.

    They are for swingbot's own code that reads what came from a kernel, after every boot: the test
    takes longer than such a reader. A sandbox that cannot be set up raises NoWalls when it is used.
    """
    if os.environ.get(SWITCH) == "off" or _unavailable():
        return ()
    try:
        control = cgroup.find()
    except cgroup.NoGroup:
        control = None
    return tuple(Sandbox(way=way, limits=limits_of(), control=control) for way in _ways())


def _looked(sandbox: Sandbox, way: Way) -> Probe:
    sandbox, defects = _limited(sandbox)
    for trust in USERS:
        defects = {**_seen(sandbox, way, trust), **defects}
    walls = tuple(
        Wall(name=name, stands=name not in defects, why=defects.get(name, words))
        for name, words in WALLS.items()
    )
    standing = tuple(wall.name for wall in walls if wall.stands)
    confined = set(WALLS) - set(standing) <= LIMITS
    return Probe(walls=walls, sandbox=replace(sandbox, walls=standing) if confined else None)


def _limited(sandbox: Sandbox) -> tuple[Sandbox, dict[str, str]]:
    """Add the limits of this host to `sandbox`; return it with the defects by wall."""
    defects: dict[str, str] = {}
    try:
        control = cgroup.find()
        sandbox = replace(sandbox, control=control, limits=_within(control, sandbox.limits))
    except cgroup.NoGroup as error:
        why = f"no cgroup for the build ({error}); {cgroup.HOW_TO}"
        defects = {"memory": why, "count": why}
    try:
        sandbox = replace(sandbox, scratch=disk.find(sandbox.limits))
    except disk.NoScratch as error:
        defects["disk"] = str(error)
    return sandbox, defects


def _within(control: cgroup.Parents | cgroup.Inherited, limits: BuildLimits) -> BuildLimits:
    if isinstance(control, cgroup.Parents):
        return limits
    return replace(
        limits,
        memory=min(limits.memory, control.memory_limit),
        processes=min(limits.processes, control.processes),
    )


def _seen(sandbox: Sandbox, way: Way, trust: Trust) -> dict[str, str]:
    """Return the defect of each wall that has one. Raises InfraError if the test cannot run."""
    with tempfile.TemporaryDirectory(prefix="swingbot-walls-") as work:
        source, objects, log = (Path(work) / name for name in ("source", "objects", "log"))
        source.mkdir(mode=0o755)
        objects.mkdir()
        owned(objects, way, trust)
        view = View(
            trust=trust, read_only=(source,), writable=((objects, objects),), directory=source
        )
        arguments = [
            str(source),
            str(objects),
            str(os.getpid()),
            str(sandbox.limits.tmp),
        ]
        command = SandboxedCommand(
            argv=["bash", "-c", _LOOK, "bash", *arguments],
            view=view,
            env=_ENVIRONMENT,
            log=log,
            measured=objects,
        )
        done = sandbox.run(command, timeout=_SECONDS)
        lines = [line.partition(" ")[::2] for line in log.read_text(errors="replace").splitlines()]
    if done.rc != 0 or ("end", "") not in lines:
        raise InfraError(f"The test script behind the walls exited with status {done.rc}.")
    defects = {word: text[:1000] for word, text in reversed(lines) if word in WALLS}
    if defects.pop("user", "") != str(USERS[trust]):
        defects["user"] = "runs as another user"
    return defects


def _none(why: str) -> Probe:
    return Probe(
        walls=tuple(Wall(name=name, stands=False, why=why) for name in WALLS), sandbox=None
    )
