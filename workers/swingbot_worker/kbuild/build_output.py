"""Read the output of a build, which is untrusted input.

Missing files are the build's failure; files longer than a limit of ours are infrastructure.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from swingbot_jobs.limits import KCONFIG_BYTES
from swingbot_worker import LimitReached, limits
from swingbot_worker.kbuild.make import BuildFailed

MIB: Final = 1 << 20
# A bzImage with every driver built in is below 100 MB.
# The .config of a kernel with every option has 0.4 MB, a preprocessed vmlinux.lds 0.1 MB.
LONGEST: Final = {
    "arch/x86/boot/bzImage": limits.BZIMAGE_BYTES,
    "System.map": limits.SYSTEM_MAP_BYTES,
    ".config": KCONFIG_BYTES,
    "arch/x86/kernel/vmlinux.lds": limits.LINKER_SCRIPT_BYTES,
}
_NOT_AS_LEFT: Final = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENXIO,
    errno.ENAMETOOLONG,
)


def take(directory: Path, name: str, target: Path) -> None:
    """Copy the file `name` of an object directory to `target`.

    Raises BuildFailed if it is missing or not a regular file, LimitReached if it is too long.
    """
    with opened(directory, name) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)


def content(directory: Path, name: str) -> bytes:
    """Return the content of the file `name`. Raises BuildFailed as `take` does."""
    with opened(directory, name) as source:
        return source.read(LONGEST[name])


@contextlib.contextmanager
def opened(directory: Path, name: str) -> Iterator[IO[bytes]]:
    """Open the file `name` of an object directory. Raises BuildFailed as `take` does."""
    try:
        descriptor = os.open(directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in _NOT_AS_LEFT:
            raise
        raise BuildFailed(f"The build ended without an error, but left no {name}.", []) from None
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise BuildFailed(f"The build left {name}, but it is not a regular file.", [])
        if state.st_size > LONGEST[name]:
            raise LimitReached(
                f"The build left a {name} of {state.st_size // MIB} MB; the limit is "
                f"{LONGEST[name] // MIB} MB."
            )
        with open(descriptor, "rb", closefd=False) as source:
            yield source
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def spoilt(directory: Path) -> Iterator[None]:
    """Attribute unreadable files below `directory` to the build and not to the disk.

    Raises BuildFailed if such a file is missing, of another type or not valid UTF-8.
    """
    try:
        yield
    except UnicodeDecodeError:
        raise BuildFailed("The build left a text file that is not valid UTF-8.", []) from None
    except OSError as error:
        if error.errno not in _NOT_AS_LEFT or not str(error.filename or "").startswith(
            f"{directory}/"
        ):
            raise
        raise BuildFailed(
            f"The build deleted or damaged {os.path.relpath(error.filename, directory)}.", []
        ) from None


def refuse_huge(source_bytes: int) -> None:
    """Raise LimitReached for a source whose checkout would fill the disk."""
    if source_bytes > limits.SOURCE_BYTES:
        raise LimitReached(
            f"The source has {source_bytes // MIB} MB of files; the limit is"
            f" {limits.SOURCE_BYTES // MIB} MB."
        )
