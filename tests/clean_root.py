"""A root file system that holds what a kit's README asks for and nothing else:
a shell, POSIX tools, tar, awk, sha256sum and QEMU.

Made of this host's own packages, without a network and in a second, so that a test can ask whether
a script needs more than it says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

PACKAGES = (
    "dash",
    "coreutils",
    "sed",
    "tar",
    "mawk",
    "gzip",
    "qemu-system-x86",
    "qemu-system-common",
    "qemu-system-data",
    "seabios",
)
_UNWANTED = re.compile(
    r"/usr/share/(?:doc|man|info|locale|lintian|bash-completion|applications|icons|mime)/|/etc/"
)
_NEEDED = re.compile(r"=> (/\S+) \(|^\s*(/\S+) \(", re.MULTILINE)
# Most of its package is firmware of machines that are never booted here.
_LARGE_BYTES = 6 << 20


def make(root: Path) -> Path:
    """Fill `root` (must not be there yet)."""
    for name in ("bin", "sbin", "lib", "lib64", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64"):
        (root / "usr" / name.removeprefix("usr/")).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    for name in ("dev", "proc", "tmp", "root"):
        (root / name).mkdir()
    listed = subprocess.run(
        ["dpkg-query", "-L", *PACKAGES], capture_output=True, text=True, check=True
    ).stdout
    files = [
        Path(line)
        for line in sorted(set(listed.splitlines()))
        if line.startswith("/") and not _UNWANTED.match(line)
    ]
    programs = [_put(root, file) for file in files if _is_wanted(file)]
    for library in _libraries(file for file in programs if file is not None):
        _put(root, library)
    if not (root / "usr/bin/sh").exists():
        (root / "usr/bin/sh").symlink_to("dash")
    (root / "usr/bin/awk").symlink_to("mawk")
    return root


def run(
    root: Path, command: str, *, binds: Mapping[Path, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a shell command in there, with nothing of this host in sight but `binds` (place here ->
    place there). Without root: in a user namespace.
    """
    for inside in binds.values():
        (root / inside.lstrip("/")).mkdir(parents=True, exist_ok=True)
    mounts = [f"mount --rbind /dev {root}/dev", f"mount -t proc proc {root}/proc"]
    mounts += [f"mount --bind {here} {root}/{there.lstrip('/')}" for here, there in binds.items()]
    private = (
        "{ mount --make-rprivate / 2>/dev/null || :;"
        " }"
    )  # in a chroot `/` is not a mount point, and whoever made it has seen to it
    script = " && ".join(
        [
            private,
            *mounts,
            f'exec env -i PATH=/usr/bin:/usr/sbin HOME=/root chroot {root} sh -c "$1"',
        ]
    )
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    walls = [
        "unshare",
        "--mount",
        "--propagation",
        "unchanged",
        "--pid",
        "--fork",
        "--kill-child",
        *user,
    ]
    return subprocess.run(
        [*walls, "sh", "-c", script, "sh", command], capture_output=True, text=True, timeout=timeout
    )


def _is_wanted(file: Path) -> bool:
    return (
        not file.is_dir()
        and file.exists()
        and (file.stat().st_size < _LARGE_BYTES or "qemu-system-x86_64" in file.name)
    )


def _put(root: Path, file: Path) -> Path | None:
    """Copy a file to its place; returns it where it may need libraries."""
    there = str(file).lstrip("/")
    place = root / (there if there.startswith("usr/") else f"usr/{there}")
    if place.exists() or place.is_symlink():
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file.resolve(), place)
    place.chmod(file.stat().st_mode)
    with place.open("rb") as opened:
        return file if opened.read(4) == b"\x7fELF" else None


def _libraries(programs: Iterable[Path]) -> set[Path]:
    found: set[Path] = set()
    for program in programs:
        listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
        found |= {Path(one or other) for one, other in _NEEDED.findall(listed)}
    return found
