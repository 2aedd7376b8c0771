"""A directory for the objects that a request creates, beside those of the mirror.

They join the mirror when the request is accepted, and are deleted otherwise, as those of a push to
`git receive-pack` are. Nothing refers to them before.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

# `git prune` deletes directories with this prefix, too.
_PREFIX: Final = "tmp_objdir-swingbot-"
_ABANDONED_SECONDS: Final = 60.0  # a younger one may not be locked yet


class Quarantine:
    """The directory `path` for objects beside those in the directory `objects`."""

    def __init__(self, path: Path, objects: Path) -> None:
        self.path, self._objects = path, objects

    @property
    def environment(self) -> Mapping[str, str]:
        """Lets git write here, read both, and refuse to change a ref."""
        return {
            "GIT_OBJECT_DIRECTORY": str(self.path),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self._objects),
            "GIT_QUARANTINE_PATH": str(self.path),
        }

    def admit(self) -> None:
        """Move all objects to the mirror; safe to repeat."""
        files = [file for file in self.path.rglob("*") if file.is_file()]
        for file in sorted(files, key=lambda file: file.suffix == ".idx"):  # after its pack
            target = self._objects / file.relative_to(self.path)
            target.parent.mkdir(exist_ok=True)
            file.replace(target)


@contextmanager
def quarantine(objects: Path) -> Iterator[Quarantine]:
    """Create a quarantine beside `objects` and delete it afterwards, with what a process that died
    left there.
    """
    for left in objects.glob(f"{_PREFIX}*"):
        with _locked(left, fcntl.LOCK_NB) as abandoned, suppress(FileNotFoundError):
            if abandoned and time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=objects) as path, _locked(Path(path)):
        yield Quarantine(Path(path), objects)


@contextmanager
def _locked(directory: Path, how: int = 0) -> Iterator[bool]:
    """Lock a directory; yield whether that succeeded. A process that dies unlocks it.

    The owner waits for those that look whether it is abandoned, which takes them no time.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | how)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)
