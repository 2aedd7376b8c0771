"""The walls as a bubblewrap command line. Pure except for listing the system directories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from swingbot_jobs.contract.trust import Trust
from swingbot_worker.walls.limits import BuildLimits

# User ids that Debian and systemd do not assign. Each trust level has its own, which separates
# limits and files.
USERS: Final[dict[Trust, int]] = {"trusted": 65_531, "untrusted": 65_532}
# The files of /etc that programs need: no passwords, no keys, no host names of this site.
_ETC: Final = (
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ssl/openssl.cnf",
    "ccache.conf",
)
_SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# bwrap makes / a slave mount, which fails in a chroot whose / is not a mount point. Therefore / is
# first bind-mounted over a directory of /proc, which is a separate mount and is made private
# before, so that no other mount namespace sees it.
_CHROOT: Final = (
    "mount --make-rprivate /proc && mount --rbind / /proc/fs"
    # chroot is in /usr/sbin, which the PATH of the command need not have.
    ' && exec "$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)" /proc/fs "$@"'
)

Way = Literal["root", "root in a chroot", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The visible files, as absolute paths."""

    trust: Trust
    read_only: tuple[Path, ...] = ()
    writable: tuple[tuple[Path, Path], ...] = ()  # (outside, inside), mounted over `read_only`
    empty: tuple[Path, ...] = ()  # subdirectories that appear empty
    directory: Path = field(default=Path("/tmp"))  # working directory of the command


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """File descriptors that are passed to bwrap by number."""

    seccomp: int
    info: int
    keep: int | None = None  # kept open while the sandbox lives, and not passed to the command


def behind(
    way: Way,
    view: View,
    limits: BuildLimits,
    seconds: float,
    descriptors: Descriptors,
    argv: Sequence[str],
    *,
    grouped: bool,
) -> list[str]:
    """Return the command line that runs `argv` behind all walls.

    `grouped`: a cgroup limits memory and processes, and records when it does.
    """
    around = (
        ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", _CHROOT, "sh"]
        if way == "root in a chroot"
        else []
    )
    user = USERS[view.trust]
    return [
        # Out of memory, the host's kernel kills the build first. Raised by a worker with
        # CAP_SYS_RESOURCE, it is also the least value for everything that the build starts.
        *("choom", "-n", "1000", "--"),
        *around,
        "bwrap",
        *_apart(way, user),
        *_files(view, limits),
        *_descriptors(descriptors),
        "--",
        *_limited(limits, seconds, grouped=grouped),
        *_drop(way, user),
        *argv,
    ]


def _apart(way: Way, user: int) -> list[str]:
    spaces = [
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--hostname",
        "swingbot",
        "--die-with-parent",
    ]
    if way == "user":
        return [
            *spaces,
            "--unshare-user",
            "--disable-userns",
            "--uid",
            str(user),
            "--gid",
            str(user),
        ]
    # As root, no user namespace is needed: bwrap mounts as root, and its child switches to the
    # build user first.
    return [
        *spaces,
        "--cap-drop",
        "ALL",
        *(word for cap in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{cap}")),
    ]


def _files(view: View, limits: BuildLimits) -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in (f"/{name}" for name in _SYSTEM):
        if os.path.islink(name):
            words += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            words += ["--ro-bind", name, name]
    # if bwrap created them implicitly, only root could read them
    words += ["--dir", "/etc", "--dir", "/etc/ssl"]
    for name in _ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += [
        "--proc",
        "/proc",
        # the boot parameters of the host
        "--ro-bind",
        "/dev/null",
        "/proc/cmdline",
        # no process changes its own oom_score_adj, also where the worker may not forbid it
        "--remount-ro",
        "/proc",
        "--dev",
        "/dev",
        "--remount-ro",
        "/dev",
        "--perms",
        "1777",
        "--size",
        str(limits.tmp),
        "--tmpfs",
        "/tmp",
    ]
    words += [word for path in _parents(view) for word in ("--dir", str(path))]
    for path in view.read_only:
        words += ["--ro-bind", str(path), str(path)]
    for path in view.empty:
        words += [
            "--perms",
            "0555",
            "--size",
            "4096",
            "--tmpfs",
            str(path),
            "--remount-ro",
            str(path),
        ]
    for outside, inside in view.writable:
        words += ["--bind", str(outside), str(inside)]
    return [*words, "--remount-ro", "/", "--chdir", str(view.directory)]


def _parents(view: View) -> list[Path]:
    """Return the parents of visible paths, top first; bwrap would make them root-only."""
    shown = [
        *view.read_only,
        *(
            inside
            for _, inside in view.writable
            if not any(inside.is_relative_to(path) for path in view.read_only)
        ),
    ]
    return sorted(
        {
            parent
            for path in shown
            for parent in path.parents
            if parent not in (Path("/"), Path("/tmp"))
        }
    )


def _descriptors(descriptors: Descriptors) -> list[str]:
    words = ["--seccomp", str(descriptors.seccomp), "--info-fd", str(descriptors.info)]
    return words if descriptors.keep is None else [*words, "--sync-fd", str(descriptors.keep)]


def _limited(limits: BuildLimits, seconds: float, *, grouped: bool) -> list[str]:
    """Return the limits per process.

    A cgroup limits memory and number of all processes together. Without one, `guard` does, and each
    process has the limits of all.
    """
    alone = {} if grouped else {"as": limits.memory, "nproc": limits.processes}
    rlimits = {
        **alone,
        "fsize": limits.file,
        "nofile": 4096,
        "core": 0,
        "memlock": 0,
        "cpu": int(seconds) + 1,
    }
    return [
        "prlimit",
        *(f"--{name}={value}:{value}" for name, value in rlimits.items()),
        "--",
    ]


def _drop(way: Way, user: int) -> list[str]:
    if way == "user":
        return []
    return [
        "setpriv",
        f"--reuid={user}",
        f"--regid={user}",
        "--clear-groups",
        "--no-new-privs",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--",
    ]
