"""What a build left, taken as a stranger's: of sensible length, where it should be, and a fault of the build if it is not."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swingbot_worker.kbuild import objects
from swingbot_worker.kbuild.elf import NotAnObject
from swingbot_worker.kbuild.make import BuildFailed

MIB: Final = 1 << 20
# A bzImage with every driver built in is below 100 MB.
LONGEST: Final = {"arch/x86/boot/bzImage": 512 * MIB, "System.map": 256 * MIB, ".config": 16 * MIB}
# All files of Linux 6.18 together are 1.6 GB.
SOURCE_BYTES: Final = 8 << 30
_NOT_AS_LEFT: Final = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENXIO,
    errno.ENAMETOOLONG,
)


def take(directory: Path, name: str, target: Path) -> None:
    """Copy the file `name` of an object directory to `target`. Raises BuildFailed if it is not there, no plain file or too long."""
    try:
        descriptor = os.open(directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno not in _NOT_AS_LEFT:
            raise
        raise BuildFailed(f"The build ended without an error, but left no {name}.", []) from None
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise BuildFailed(f"The build left {name}, but it is no file.", [])
        if state.st_size > LONGEST[name]:
            raise BuildFailed(
                f"The build left a {name} of {state.st_size // MIB} MB; {LONGEST[name] // MIB} MB are taken.",
                [],
            )
        with open(descriptor, "rb", closefd=False) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    finally:
        os.close(descriptor)


def sizes(vmlinux: Path) -> dict[str, int]:
    """Sizes of the kernel. Raises BuildFailed if it is no kernel."""
    try:
        return objects.sizes(vmlinux)
    except NotAnObject as error:
        raise BuildFailed(f"The build left a vmlinux that is none: {error}.", []) from None


@contextlib.contextmanager
def spoilt(directory: Path) -> Iterator[None]:
    """Something below `directory` that is missing, another kind of file or no text is the build's doing, not the disk's. Raises BuildFailed."""
    try:
        yield
    except UnicodeDecodeError:
        raise BuildFailed("The build left a text file that is no text.", []) from None
    except OSError as error:
        if error.errno not in _NOT_AS_LEFT or not str(error.filename or "").startswith(
            f"{directory}/"
        ):
            raise
        raise BuildFailed(
            f"The build took away or spoilt {os.path.relpath(error.filename, directory)}.", []
        ) from None


def refuse_huge(source_bytes: int) -> None:
    """Raise BuildFailed for a source that would fill the disk when it is checked out."""
    if source_bytes > SOURCE_BYTES:
        raise BuildFailed(
            f"Its files are {source_bytes // MIB} MB together; {SOURCE_BYTES // MIB} MB are checked out at most.",
            [],
        )
