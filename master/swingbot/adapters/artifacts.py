"""Content-addressed store of raw results: a directory of files named by the sha256 of their
content, and the secret that authorises workers to write to it.

A file appears under its name only when it is complete, verified and on disk, so readers never see a
partial file. Files are compressed (`zstd_file`). A pruned file leaves a note (`cdef....gone`) of
when and why it was removed.
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

from swingbot.adapters import limits, private_file
from swingbot.adapters.zstd_file import ZstdReader, ZstdWriter
from swingbot.core.model.artifact import ArtifactError, Gone, NoSpace, Pruned, TooLarge, WrongDigest

SHA256: Final = re.compile(r"[0-9a-f]{64}")
_STALE_SECONDS: Final = 24 * 3600.0
_CHUNK: Final = 1 << 18
_COMPRESSED: Final = ".zst"
GONE: Final = ".gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArtifact:
    """A file of the store: `path` relative to its root, `size` in bytes on disk, `modified` in UNIX
    time.
    """

    sha256: str
    path: str
    size: int
    modified: float


class Sink:
    """An upload into the store: `write` its bytes, then `commit` or `abort`. An aborted upload
    leaves nothing behind.
    """

    def __init__(self, sha256: str, target: Path, temporary: Path, limit: int) -> None:
        self._sha256, self._target, self._temporary, self._limit = sha256, target, temporary, limit
        self._digest, self._size = hashlib.sha256(), 0
        try:
            self._file = temporary.open("xb")
        except OSError as error:
            raise _explain(error, temporary) from error
        self._writer = ZstdWriter(self._file)

    def write(self, chunk: bytes) -> None:
        """Add bytes. Raises TooLarge or NoSpace, which leave nothing behind."""
        self._size += len(chunk)
        if self._size > self._limit:
            self.abort()
            raise TooLarge(f"the file is larger than the limit of {self._limit} bytes")
        self._digest.update(chunk)
        try:
            self._writer.write(chunk)
        except OSError as error:
            self.abort()
            raise _explain(error, self._temporary) from error

    def commit(self) -> None:
        """Make the file visible. Raises WrongDigest or NoSpace, which leave nothing behind."""
        if self._digest.hexdigest() != self._sha256:
            self.abort()
            raise WrongDigest(
                f"the received bytes have sha256 {self._digest.hexdigest()}, which differs "
                "from the one in the address"
            )
        try:
            self._writer.finish()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._target.parent.mkdir(exist_ok=True)
            self._temporary.replace(self._target)
            self._target.with_suffix(GONE).unlink(missing_ok=True)
            _sync_directory(self._target.parent)
        except OSError as error:
            self.abort()
            raise _explain(error, self._temporary) from error

    def abort(self) -> None:
        """Discard the file; harmless after `commit`."""
        with suppress(OSError):  # the buffer could not be written, but it is discarded anyway
            self._file.close()
        self._temporary.unlink(missing_ok=True)


class ArtifactDirectory:
    """The store: `root/ab/cdef....zst` holds the file with sha256 abcdef...; `limit` is the maximum
    size in bytes.
    """

    def __init__(self, root: Path, limit: int = limits.ARTIFACT_BYTES) -> None:
        self._root, self._limit = root, limit
        self._incoming = root / "incoming"

    def _file(self, sha256: str, suffix: str = _COMPRESSED) -> Path:
        if SHA256.fullmatch(sha256) is None:
            raise ValueError(f"{sha256[:80]!r} is not a sha256 (64 hex digits)")
        return self._root / sha256[:2] / f"{sha256[2:]}{suffix}"

    def has(self, sha256: str) -> bool:
        """Return whether the store has a file. Raises ValueError if `sha256` is not valid."""
        return self._file(sha256).is_file()

    def open(self, sha256: str) -> BinaryIO:
        """Return the content of a stored file, seekable.

        Raises FileNotFoundError (Gone if it was pruned), Damaged (now or while reading), ValueError
        if `sha256` is not valid.
        """
        try:
            file = self._file(sha256).open("rb")
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
        """Start to store a file that is received in chunks."""
        target = self._file(sha256)
        try:
            self._incoming.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _explain(error, self._incoming) from error
        return Sink(
            sha256, target, self._incoming / f"{sha256}.{secrets.token_hex(6)}", self._limit
        )

    def put(self, stream: BinaryIO, sha256: str) -> bool:
        """Store the content of `stream`; return False if it was already stored.

        Raises ArtifactError.
        """
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
        """Return when and why a file was pruned; None if it was not, or was stored again."""
        note = self._file(sha256, GONE)
        try:
            text, at = note.read_text().strip(), datetime.fromtimestamp(note.stat().st_mtime, UTC)
        except FileNotFoundError:
            return None
        return None if self.has(sha256) else Pruned(at, text or "pruned")

    def prune(self, sha256: str, note: str) -> int:
        """Remove a file, and leave `note` if the file existed; return the number of freed bytes.

        Raises OSError.
        """
        freed = 0
        if note:
            self._file(sha256, GONE).write_text(note + "\n")
        with suppress(FileNotFoundError):
            freed = self._file(sha256).stat().st_size
            self._file(sha256).unlink()
        return freed

    def stored(self) -> Iterator[StoredArtifact]:
        """Yield every file and note of the store, unordered; files that disappear in the meantime
        are skipped.
        """
        for folder in self._root.glob("[0-9a-f][0-9a-f]"):
            for entry in os.scandir(folder):
                sha256 = folder.name + entry.name.partition(".")[0]
                if SHA256.fullmatch(sha256) is not None:
                    with suppress(FileNotFoundError):
                        status = entry.stat()
                        yield StoredArtifact(
                            sha256=sha256,
                            path=f"{folder.name}/{entry.name}",
                            size=status.st_size,
                            modified=status.st_mtime,
                        )

    def sweep(self, now: float | None = None) -> int:
        """Remove the remains of uploads that died more than a day ago; return their number."""
        oldest = (time.time() if now is None else now) - _STALE_SECONDS
        stale = [file for file in self._incoming.glob("*") if file.stat().st_mtime < oldest]
        for file in stale:
            file.unlink(missing_ok=True)
        return len(stale)


def secret(file: Path) -> bytes:
    """Return the key for attempt tokens: read from `file`, which the first call creates, readable
    by the owner only.
    """
    while True:
        try:
            return bytes.fromhex(file.read_text().strip())
        except FileNotFoundError:
            _create_secret(file)


def _create_secret(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = private_file.aside(file, f"{secrets.token_hex(32)}\n".encode())
    try:
        # fails if another process was first: then its secret is used
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
