"""Files of a reproduction kit on this machine: the tarball, and the directory unpacked from it."""

from __future__ import annotations

import errno
import gzip
import os
import tarfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, cast

from swingbot.app.limits import OUTPUT_BYTES
from swingbot.core.model import ids
from swingbot.core.raw.tar_members import BROKEN, careful
from swingbot.core.text.numbers import count

_OVERHEAD_BYTES: Final = 4096  # of a file, for its name and its last block
_KINDS: Final = ("report", "comparison", "experiment")


class IncompleteReproduction(Exception):
    """Files that the kit needs are missing; the message lists them."""

    def __init__(self, id: str, missing: Sequence[str]) -> None:
        listed = "; ".join(missing[:5]) + (
            f"; and {len(missing) - 5} more" if len(missing) > 5 else ""
        )
        super().__init__(
            f"{id} can no longer be fully reproduced; {count(len(missing), 'item')}"
            f" {'is' if len(missing) == 1 else 'are'} missing: {listed}"
        )
        self.missing = tuple(missing)


def is_tarball(out: Path) -> bool:
    """Return whether `--out` names a tarball; else it names a directory."""
    return out.name.endswith((".tar.gz", ".tgz"))


def kind_of(id: str) -> str:
    """Return the kind of an id that has a kit. Raises BadId."""
    kind, _ = ids.read(id)
    if kind not in _KINDS:
        article = "an" if kind[0] in "aeio" else "a"
        raise ids.BadId(
            f"{id!r} is the id of {article} {kind};"
            " give the id of a report, comparison or experiment"
        )
    return kind


def unpack(write: Callable[[BinaryIO], object], name: str, directory: Path) -> None:
    """Unpack the tarball that `write` writes, whose top directory is `name`, to a new directory,
    atomically. Raises OSError.
    """
    directory = directory.absolute()
    if directory.exists() and any(directory.iterdir()):
        raise FileExistsError(
            errno.EEXIST, "is not empty; choose another directory", str(directory)
        )
    archive = directory.with_name(f".{directory.name}.tar")
    with appearing(archive) as file:
        write(file)
    temporary = directory.with_name(f".{directory.name}.part")
    try:
        with (
            gzip.open(archive) as plain,
            tarfile.open(fileobj=careful(cast(BinaryIO, plain)), mode="r:") as tar,
        ):
            _check(tar, name, archive)
            # Debian 12 lacks filters
            tar.extractall(temporary)
        with suppress(FileNotFoundError):
            directory.rmdir()
        (temporary / name).rename(directory)
    except (*BROKEN, gzip.BadGzipFile) as error:
        raise OSError(f"the kit cannot be read: {error}") from None
    finally:
        archive.unlink(missing_ok=True)
        _remove(temporary)


def _check(tar: tarfile.TarFile, name: str, archive: Path) -> None:
    """Raise OSError for anything but files, and links between them, below the directory `name`,
    and for more than OUTPUT_BYTES.

    `name` is a service's, too: `/` would be above everything.
    """
    size = 0
    if PurePosixPath(name).name != name:
        raise OSError(f"the kit is refused: {name[:200]!r} is not the name of a directory")
    for member in tar:
        paths = [member.name, *([member.linkname] if member.islnk() else [])]
        parts = [PurePosixPath(path).parts for path in paths]
        inside = all(p[:1] == (name,) and len(p) > 1 and ".." not in p for p in parts)
        if not (inside and (member.isreg() or member.islnk())):
            raise OSError(f"the kit is refused: {member.name[:200]!r} is not a file of {name}")
        member.mode &= 0o755  # root would keep a bit that lets others run it as its owner
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        size += member.size + _OVERHEAD_BYTES
        if size > OUTPUT_BYTES:
            raise OSError(
                f"the kit is refused: it has more than {OUTPUT_BYTES >> 30} GiB; give --out a"
                " .tar.gz to look at it packed"
            )


@contextmanager
def appearing(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `target` once it is complete and synced.

    On failure the temporary file is removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        if error.filename is None and error.strerror:  # a failed write carries no file name
            raise OSError(
                error.errno,
                f"{error.strerror}; free some disk space, or choose another path",
                str(target),
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _remove(directory: Path) -> None:
    for path in sorted(directory.rglob("*"), reverse=True) if directory.is_dir() else ():
        path.rmdir() if path.is_dir() else path.unlink()
    with suppress(FileNotFoundError):
        directory.rmdir()
