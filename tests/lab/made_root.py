"""Directories in which a root file system is made by programs that mount in it,
such as mmdebstrap, and how such a directory is removed.

A program that is killed leaves its mounts: this host's /dev/shm and /proc below the new root.
Who then removes the directory removes what is in them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

# In a chroot `/` is not a mount point, so this fails there and mounts may be seen from outside;
# `remove` looks before it removes anything.
_PRIVATE = 'mount --make-rprivate / 2>/dev/null || :; exec "$@"'


def apart(argv: Sequence[str]) -> list[str]:
    """`argv` with a mount namespace of its own: its mounts are invisible to others,
    and it is gone with its last process. Needs root.
    """
    return ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", _PRIVATE, "sh", *argv]


def mounted_below(path: Path, mountinfo: str) -> list[Path]:
    """Mount points at and below `path`, by the text of /proc/self/mountinfo (proc(5):
    the fifth word, with blanks and backslashes as octal numbers).
    """
    points = [
        Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), line.split()[4]))
        for line in mountinfo.splitlines()
    ]
    return [point for point in points if point == path or path in point.parents]


def remove(path: Path) -> None:
    """Remove `path` and all below it, if it is there.

    Raises RuntimeError, with nothing removed, if something is mounted there.
    """
    if mounted := mounted_below(path.resolve(), Path("/proc/self/mountinfo").read_text()):
        raise RuntimeError(
            f"{path} stays, for {mounted[0]} is mounted there: `umount --recursive {mounted[0]}`"
            " first"
        )
    shutil.rmtree(path, ignore_errors=True)
