"""Raw results by content: a folder of files named by the sha256 of what is in them, and the secret that lets workers write to it.

A file appears under its name only when it is whole, verified and on the disk, so a reader never sees half of one. Files are
compressed (`zstd_file`); those that were stored before that was so are read as they are. Of a file that was pruned a note is
left (`cdef....gone`), so that whoever asks for it hears when and why it went.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, cast

from swingbot.adapters import private_file
from swingbot.adapters.zstd_file import ZstdReader, ZstdWriter
from swingbot.core.model.artifact import ArtifactError, Gone, NoSpace, Pruned, TooLarge, WrongDigest

SHA256: Final = re.compile(r"[0-9a-f]{64}")
LIMIT_BYTES: Final = 1 << 30  # the largest file that is taken; a kernel image is 10 to 200 MB
_STALE_SECONDS: Final = 24 * 3600.0
_CHUNK: Final = 1 << 18
_COMPRESSED: Final = ".zst"
GONE: Final = ".gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArtifact:
    """One file of the store: `path` below its root, `size` in bytes as it lies there, `modified` in UNIX time."""

    sha256: str
    path: str
    size: int
    modified: float


class Sink:
    """A file on its way into the store: `write` its bytes, then `commit`, or `abort`; nothing is left of an aborted one."""

    def __init__(self, sha256: str, target: Path, temporary: Path, limit: int) -> None:
        self._sha256, self._target, self._temporary, self._limit = sha256, target, temporary, limit
        self._digest, self._size = hashlib.sha256(), 0
        try:
            self._file = temporary.open("xb")
        except OSError as error:
            raise _explain(error, temporary) from error
        self._writer = ZstdWriter(self._file)

    def write(self, chunk: bytes) -> None:
        """Add bytes. Raises TooLarge or NoSpace, and then nothing is left."""
        self._size += len(chunk)
        if self._size > self._limit:
            self.abort()
            raise TooLarge(f"the file is larger than {self._limit} bytes, the most that is taken")
        self._digest.update(chunk)
        try:
            self._writer.write(chunk)
        except OSError as error:
            self.abort()
            raise _explain(error, self._temporary) from error

    def commit(self) -> None:
        """Make the file appear. Raises WrongDigest or NoSpace, and then nothing is left."""
        if self._digest.hexdigest() != self._sha256:
            self.abort()
            raise WrongDigest(
                f"the bytes that came have sha256 {self._digest.hexdigest()}, not the one in the address"
            )
        try:
            self._writer.finish()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._target.parent.mkdir(exist_ok=True)
            self._temporary.replace(self._target)
            _note_of(self._target).unlink(missing_ok=True)
            _sync_directory(self._target.parent)
        except OSError as error:
            self.abort()
            raise _explain(error, self._temporary) from error

    def abort(self) -> None:
        """Forget the file; harmless after `commit`."""
        with suppress(OSError):  # the buffer could not be written: it is not wanted any more
            self._file.close()
        self._temporary.unlink(missing_ok=True)


class Artifacts:
    """The store: `root/ab/cdef....zst` holds the file whose sha256 is abcdef...; `limit` is the largest size taken, in bytes."""

    def __init__(self, root: Path, limit: int = LIMIT_BYTES) -> None:
        self._root, self._limit = root, limit
        self._incoming = root / "incoming"

    def _plain(self, sha256: str) -> Path:
        if SHA256.fullmatch(sha256) is None:
            raise ValueError(f"{sha256[:80]!r} is not a sha256 (64 hex digits)")
        return self._root / sha256[:2] / sha256[2:]

    def _compressed(self, sha256: str) -> Path:
        plain = self._plain(sha256)
        return plain.with_name(plain.name + _COMPRESSED)

    def has(self, sha256: str) -> bool:
        """Raises ValueError for anything that is not a sha256."""
        return self._compressed(sha256).is_file() or self._plain(sha256).is_file()

    def open(self, sha256: str) -> BinaryIO:
        """The content of a stored file, seekable.

        Raises FileNotFoundError (Gone if it was pruned), Damaged (now or when it is read), ValueError for what is no sha256.
        """
        try:
            file = self._compressed(sha256).open("rb")
        except FileNotFoundError:
            try:
                return self._plain(sha256).open("rb")
            except FileNotFoundError:
                if pruned := self.pruned(sha256):
                    raise Gone(pruned.why) from None
                raise
        try:
            return cast(BinaryIO, io.BufferedReader(ZstdReader(file), _CHUNK))
        except ArtifactError:
            file.close()
            raise

    def sink(self, sha256: str) -> Sink:
        """Begin to store a file that comes in pieces."""
        target = self._compressed(sha256)
        try:
            self._incoming.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _explain(error, self._incoming) from error
        return Sink(
            sha256, target, self._incoming / f"{sha256}.{secrets.token_hex(6)}", self._limit
        )

    def put(self, stream: BinaryIO, sha256: str) -> bool:
        """Store what `stream` holds; False if it was there already. Raises ArtifactError."""
        if self.has(sha256):
            return False
        sink = self.sink(sha256)
        try:
            while chunk := stream.read(_CHUNK):
                sink.write(chunk)
            sink.commit()
        finally:
            sink.abort()
        return True

    def pruned(self, sha256: str) -> Pruned | None:
        """When and why a file was pruned; None if it was not, or has come again."""
        note = _note_of(self._plain(sha256))
        try:
            text, at = note.read_text().strip(), datetime.fromtimestamp(note.stat().st_mtime, UTC)
        except FileNotFoundError:
            return None
        return None if self.has(sha256) else Pruned(at, text or "pruned")

    def prune(self, sha256: str, note: str) -> int:
        """Remove a file and leave `note`, if there is one to leave; answers the bytes that are free now. Raises OSError."""
        freed = 0
        if note:
            _note_of(self._plain(sha256)).write_text(note + "\n")
        for path in (self._compressed(sha256), self._plain(sha256)):
            with suppress(FileNotFoundError):
                freed += path.stat().st_size
                path.unlink()
        return freed

    def stored(self) -> Iterator[StoredArtifact]:
        """Every file of the store and every note, in no order; what vanishes meanwhile is left out."""
        for folder in self._root.glob("[0-9a-f][0-9a-f]"):
            for entry in os.scandir(folder):
                sha256 = folder.name + entry.name.partition(".")[0]
                if SHA256.fullmatch(sha256) is not None:
                    with suppress(FileNotFoundError):
                        found = entry.stat()
                        yield StoredArtifact(
                            sha256=sha256,
                            path=f"{folder.name}/{entry.name}",
                            size=found.st_size,
                            modified=found.st_mtime,
                        )

    def sweep(self, now: float | None = None) -> int:
        """Remove what uploads that died more than a day ago left behind; says how many."""
        oldest = (time.time() if now is None else now) - _STALE_SECONDS
        stale = [file for file in self._incoming.glob("*") if file.stat().st_mtime < oldest]
        for file in stale:
            file.unlink(missing_ok=True)
        return len(stale)


def _note_of(file: Path) -> Path:
    return file.with_name(file.name.removesuffix(_COMPRESSED) + GONE)


def secret(file: Path) -> bytes:
    """The key that attempt tokens are made with: read from `file`, made at the first call, readable by the owner only."""
    while True:
        try:
            return bytes.fromhex(file.read_text().strip())
        except FileNotFoundError:
            _create_secret(file)


def _create_secret(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = private_file.aside(file, f"{secrets.token_hex(32)}\n".encode())
    try:
        # fails if another process was first: then its secret is the secret
        os.link(temporary, file)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explain(error: OSError, file: Path) -> ArtifactError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(
            f"the disk that holds {file.parent} is full; free some space, the worker will try again"
        )
    return ArtifactError(f"{file.parent} cannot be written: {error.strerror}")
