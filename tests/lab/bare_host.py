"""A bare Debian server with systemd as process 1, in namespaces of its own:
as quick as this host, and knowing nothing of us.

For roles that need no kernel of their own; a testbox is a machine of QEMU (machine.py).
Servers and machines that are started inside `network()` share a network that is its loopback alone:
no other process reaches it, and no port of it collides with one of this host. Needs root.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import lease
from swingbot_worker.site import from_environment
from tests.lab.debs import SUITE, sources_list

# What an installer leaves on a server that Ansible can be pointed at.
PACKAGES = ("systemd", "systemd-sysv", "dbus", "udev", "iproute2", "procps", "python3")
START_SECONDS = 300.0
_CLONE_NEWNET = 0x40000000

# Becomes process 1 of the server. $1: its root, $2: its name.
# What it may see of this host is a handful of devices, its own branches of the control groups of
# systemd, memory and pids,
# and the folders that are shared with it. /proc is whole, or no user could mount one behind walls
# of its own; kernel parameters are this host's, so nothing sets them.
_BECOME = r"""
dir=$1
mount --make-rprivate /
mount --bind "$dir" "$dir"
for name in run tmp dev; do mount -t tmpfs -o mode=1777 "$name" "$dir/$name"; done
chmod 755 "$dir/run" "$dir/dev"
mount -t proc proc "$dir/proc"
mount -t sysfs -o ro sys "$dir/sys"
for name in null zero full random urandom tty; do touch "$dir/dev/$name"; mount --bind "/dev/$name" "$dir/dev/$name"; done
mkdir "$dir/dev/shm" "$dir/dev/pts"
mount -t tmpfs shm "$dir/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 pts "$dir/dev/pts"
ln -s pts/ptmx "$dir/dev/ptmx"
ln -s /proc/self/fd "$dir/dev/fd"
for name in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${name%:*}" "$dir/dev/${name#*:}"; done
hostname "$2"
mount -t tmpfs -o mode=755 groups "$dir/sys/fs/cgroup"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	group=/sys/fs/cgroup/$3; mkdir -p "$group"; echo $$ >"$group/cgroup.procs"
	exec unshare --cgroup sh -euc "mount -t cgroup2 group '$dir/sys/fs/cgroup'; $4" become "$dir"
fi
group=/sys/fs/cgroup/systemd/$3; mkdir -p "$group"; echo $$ >"$group/cgroup.procs"
mkdir "$dir/sys/fs/cgroup/systemd"
for name in memory pids; do
	[ -d "/sys/fs/cgroup/$name" ] || continue
	group=/sys/fs/cgroup/$name/$3; mkdir -p "$group" "$dir/sys/fs/cgroup/$name"; echo $$ >"$group/cgroup.procs"
done
exec unshare --cgroup sh -euc "mount -t cgroup -o none,name=systemd group '$dir/sys/fs/cgroup/systemd'
for name in memory pids; do
	if [ -d '$dir/sys/fs/cgroup/'\$name ]; then mount -t cgroup -o \$name group '$dir/sys/fs/cgroup/'\$name; fi
done; $4" become "$dir"
"""
_PIVOT = """
cd "$1"; mkdir -p old; pivot_root . old; umount -l /old
exec env -i container=lab PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --log-target=console --show-status=no
"""


class HostError(Exception):
    """The server did not execute a request; the message says which."""


@contextlib.contextmanager
def network() -> Iterator[None]:
    """What this thread starts meanwhile is in a network of its own, whose only interface is the
    loopback.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as ours:
        if libc.unshare(_CLONE_NEWNET) != 0:
            raise HostError(f"no network of its own: {os.strerror(ctypes.get_errno())}")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            libc.setns(ours.fileno(), _CLONE_NEWNET)


@dataclass(kw_only=True)
class BareHost:
    """One server; `folder` holds its root, its log and the command that stands in for ssh."""

    folder: Path
    group: str
    process: subprocess.Popen[bytes]
    pid: int

    @classmethod
    def start(
        cls,
        folder: Path,
        name: str,
        *,
        files: Mapping[str, str] | None = None,
        shared: Mapping[Path, str] | None = None,
    ) -> BareHost:
        """A new server called `name`, up when this returns.

        `files`: their text by path; `shared`: folders of this host that it reads, by where.
        """
        folder.mkdir(parents=True, exist_ok=True)
        root, log = folder / "root", folder / "systemd.log"
        subprocess.run(["cp", "-a", "--reflink=auto", str(debian()), str(root)], check=True)
        for path, text in {"etc/hostname": f"{name}\n", **(files or {})}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        (root / "etc/systemd/system/systemd-sysctl.service").symlink_to("/dev/null")
        binds = ""
        for source, where in (shared or {}).items():
            (root / where).mkdir(parents=True, exist_ok=True)
            binds += (
                f"mount --bind '{source}' '{root / where}';"
                f" mount -o remount,ro,bind '{root / where}'\n"
            )
        group = f"swingbot-lab-{os.getpid()}-{time.monotonic_ns()}"
        apart = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=SIGKILL"]
        with log.open("wb") as out:
            argv = [
                *apart,
                "sh",
                "-euc",
                _BECOME.replace("hostname ", f"{binds}hostname "),
                "become",
                str(root),
                name,
                group,
                _PIVOT,
            ]
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        host = cls(folder=folder, group=group, process=process, pid=0)
        host._wait_until_up()
        return host

    def _wait_until_up(self) -> None:
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up and self.process.poll() is None:
            children = (
                Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
                .read_text()
                .split()
            )
            if children and Path(f"/proc/{children[0]}/comm").read_text().strip() == "systemd":
                self.pid = int(children[0])
                said = self._enter("systemctl is-system-running --wait 2>&1 || true", 120).stdout
                if said.strip() in ("running", "degraded"):
                    self.ssh.write_text(
                        "#!/bin/sh\nfor last; do :; done\n"
                        f'exec {" ".join(self._prefix())} "cd; $last"\n'
                    )
                    self.ssh.chmod(0o755)
                    return
            time.sleep(0.2)
        raise HostError(
            "systemd does not come up:"
            f" {(self.folder / 'systemd.log').read_text(errors='replace')[-1500:]}"
        )

    @property
    def ssh(self) -> Path:
        """Stands in for ssh: takes its arguments, and runs the last one on the server."""
        return self.folder / "ssh"

    def _prefix(self) -> list[str]:
        environment = [
            "HOME=/root",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG=C.UTF-8",
        ]
        return [
            "nsenter",
            "-t",
            str(self.pid),
            "-m",
            "-p",
            "-u",
            "-i",
            "-n",
            "-C",
            "env",
            "-i",
            *environment,
            "sh",
            "-c",
        ]

    def _enter(self, command: str, timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._prefix(), command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )

    def run(self, command: str, timeout: float = 120.0) -> str:
        """What a shell command on the server prints. Raises HostError if it fails."""
        done = self._enter(command, timeout)
        if done.returncode != 0:
            raise HostError(
                f"{command!r} ended with status {done.returncode}:"
                f" {(done.stdout + done.stderr).strip()[-1500:]}"
            )
        return done.stdout

    def stop(self) -> None:
        """End everything in it, and delete its root."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        _forget_group(self.group)
        remove(self.folder / "root")


def _forget_group(name: str) -> None:
    """Remove a control group as soon as its last process is gone, 10 s at most."""
    give_up = time.monotonic() + 10
    groups = [
        path
        for kind in ("systemd", "memory", "pids", "")
        if (path := Path("/sys/fs/cgroup", kind, name)).exists()
    ]
    while any(group.exists() for group in groups) and time.monotonic() < give_up:
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        time.sleep(0.1)


def remove(root: Path) -> None:
    """Delete a root that may be half made.

    Raises HostError, and deletes nothing, if something is mounted in it:
    that would be this host's own.
    """
    places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    mounted = [place for place in places if place == str(root) or place.startswith(f"{root}/")]
    if mounted:
        raise HostError(f"{', '.join(mounted)} is mounted; umount it, then delete {root}")
    if root.exists():
        shutil.rmtree(root)


def debian() -> Path:
    """The root that all servers are copies of, made if it is not in the cache (a minute)."""
    root = from_environment().cache / "bare-host" / SUITE
    ready, sources = root.with_suffix(".ready"), root.with_suffix(".list")
    with lease.cache_entry(root, patience=1800.0):
        if not ready.exists() or ready.read_text() != " ".join(PACKAGES):
            remove(root)
            root.parent.mkdir(parents=True, exist_ok=True)
            sources.write_text(sources_list())
            # In a mount namespace of its own: mmdebstrap mounts /dev/shm,
            # /proc and /sys of this host into the root, and if it is killed they stay.
            apart = ["unshare", "--mount", "--propagation", "private"]
            argv = [
                *apart,
                "mmdebstrap",
                "--quiet",
                "--variant=minbase",
                "--mode=root",
                f"--include={','.join(PACKAGES)}",
                SUITE,
                str(root),
                str(sources),
            ]
            done = subprocess.run(argv, capture_output=True, text=True)
            if done.returncode != 0:
                raise HostError(f"mmdebstrap: {done.stderr[-800:]}")
            ready.write_text(" ".join(PACKAGES))
    return root
