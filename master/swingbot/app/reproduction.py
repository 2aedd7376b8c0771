"""Create `reproduce.tar.gz` of a report, comparison or experiment, atomically and reproducibly."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from swingbot.adapters import process
from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.git import Mirror
from swingbot.adapters.remembered import Remembered
from swingbot.app.kit_file import appearing, kind_of, unpack
from swingbot.app.settings import Settings
from swingbot.core.model import ids
from swingbot.core.model.artifact import ArtifactError
from swingbot.core.model.lookup import NotFound
from swingbot.core.reproduce import Kit, KitArtifact, KitMember, members
from swingbot.service import limits
from swingbot.service.ports import GitError
from swingbot.service.report.pack_kit import pack_kit
from swingbot.web.pages.reproduction import ClientLeft
from swingbot_db import read
from swingbot_db.engine import Connection, Engine
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.lkp import job_file_by_hand

NAME: Final = "reproduce.tar.gz"
KEPT: Final = 20  # tarballs that the web service caches; each is about 15 MB
_LEVEL: Final = 6
_LOOK_SECONDS: Final = 0.2  # between two looks whether a client still waits
_OF_PROGRAM: Final = (".awk", ".c")


def program_sources(folder: Path) -> dict[str, bytes]:
    """Return the sources of the program of `folder` by name, with the headers that they include:
    they compile where they are unpacked.
    """
    own = {
        path.name: path.read_bytes()
        for path in sorted(folder.glob("*"))
        if path.suffix in _OF_PROGRAM and path.is_file()
    }
    included = {
        header.name: header.read_bytes()
        for header in sorted(folder.parent.glob("*.h"))
        if any(f'#include "{header.name}"'.encode() in text for text in own.values())
    }
    return own | included


class LocalReproductionSources:
    """Implements `swingbot.service.report.kit_parts.KitSources` for a kit, on this machine's data.

    `late` has the commits whose patches were not begun within KIT_PATCH_SECONDS; it grows.
    """

    def __init__(
        self,
        conn: Connection,
        artifacts: ArtifactDirectory,
        settings: Settings,
        mirror: Mirror,
        late: set[str],
    ) -> None:
        self._conn, self._artifacts, self._settings = conn, artifacts, settings
        self._mirror, self._late = mirror, late
        self._patch_seconds = limits.KIT_PATCH_SECONDS  # that are left

    def report(self, id: str) -> Mapping[str, Any]:
        return read.report(self._conn, id)

    def incident(self, id: str) -> Mapping[str, Any]:
        return read.incident(self._conn, id)

    def table(self, id: str) -> Mapping[str, Any]:
        return read.table(self._conn, id)

    def boot(self, id: str) -> Mapping[str, Any]:
        return read.boot(self._conn, id)

    def boot_order(self, id: str) -> Mapping[str, Any]:
        return read.boot_order(self._conn, id)

    def kernel(self, key: str) -> Mapping[str, Any]:
        return read.kernel(self._conn, key)

    def tree(self, name: str) -> Mapping[str, Any]:
        try:
            return read.tree(self._conn, name)
        except NotFound:
            return {"url": "no longer watched", "branch": "unknown"}

    def page(self, id: str) -> str:
        return f"{self._settings.web_url}/{ids.read(id)[0]}/{id}"

    def patch(self, commit: str) -> tuple[bytes | None, str]:
        if self._patch_seconds <= 0:
            self._late.add(commit)
        if commit in self._late:
            return None, "the patches of this kit take too long together"
        began = process.seconds()
        try:
            return self._mirror.patch(commit), ""
        except GitError as error:
            return None, str(error)
        finally:
            self._patch_seconds -= process.seconds() - began

    def first_parents(self, commit: str, most: int) -> Sequence[str]:
        try:
            return self._mirror.first_parents_below(commit, most)
        except GitError:
            return ()

    def of_program(self, program: str) -> Mapping[str, bytes]:
        return program_sources(Path(self._settings.paths.jobs) / "programs" / program)

    def lkp_job(self, job: UnitJob) -> str:
        return job_file_by_hand(job, load_programs(Path(self._settings.paths.jobs) / "programs"))

    def open(self, sha256: str) -> BinaryIO:
        return self._artifacts.open(sha256)


@dataclass(slots=True)
class _WritingTurn:
    """`wanted`: threads that write or wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    wanted: int = 0


class Reproductions:
    """Tarballs of reports, comparisons and experiments, built on demand and cached."""

    def __init__(self, engine: Engine, artifacts: ArtifactDirectory, settings: Settings) -> None:
        self._engine, self._artifacts, self._settings = engine, artifacts, settings
        self._mirror = Mirror(settings.mirror)  # remembers patches
        self._late: Remembered[str, set[str]] = Remembered()  # of each kit
        self._lock = threading.Lock()
        self._writing: dict[Path, _WritingTurn] = {}

    @contextmanager
    def wanted(self, gone: Callable[[], bool]) -> Iterator[None]:
        """Stop what the block does when `gone` says so. Raises ClientLeft."""
        try:
            with process.stopping(gone):
                yield
        except process.Stopped:
            raise ClientLeft from None

    def kit(self, id: str, *, kernels: bool = True, testbox: str | None = None) -> Kit:
        """Collect the kit for the boots behind `id`, a report, comparison or experiment.

        `testbox` selects one of its testboxes. Raises BadId, NotFound.
        """
        kind_of(id)
        with self._engine.connect() as conn:
            sources = LocalReproductionSources(
                conn, self._artifacts, self._settings, self._mirror, self._late.get(id, set)
            )
            return pack_kit(sources, id, kernels=kernels, testbox=testbox)

    def write(self, kit: Kit, target: Path) -> int:
        """Write the tarball atomically; return its size in bytes. Raises OSError, ArtifactError."""
        with appearing(target) as file:
            self._pack(kit, file)
        return target.stat().st_size

    def unpack(self, kit: Kit, directory: Path) -> None:
        """Unpack the kit to a new directory, atomically. Raises OSError, ArtifactError."""
        unpack(lambda file: self._pack(kit, file), kit.directory, directory)

    def kept(self, kit: Kit) -> Path:
        """Path of the kit's tarball, cached or built now. Raises OSError, ArtifactError."""
        folder = self._settings.reproductions
        target = folder / f"{kit.id}-{_digest(members(kit))}.tar.gz"
        with self._writing_alone(target):
            if not target.is_file():
                folder.mkdir(parents=True, exist_ok=True)
                self.write(kit, target)
            with self._lock:
                os.utime(target)
                _forget_old(folder)
        return target

    @contextmanager
    def _writing_alone(self, target: Path) -> Iterator[None]:
        """Wait until no other thread writes this tarball. Raises Stopped."""
        with self._lock:
            turn = self._writing.setdefault(target, _WritingTurn())
            turn.wanted += 1
        try:
            while not turn.lock.acquire(timeout=_LOOK_SECONDS):
                process.check_stopped()
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            with self._lock:
                turn.wanted -= 1
                if not turn.wanted:
                    del self._writing[target]

    def _pack(self, kit: Kit, file: BinaryIO) -> None:
        when = datetime.fromisoformat(kit.created_at.replace("Z", "+00:00"))
        mtime = int(when.timestamp())
        with (
            gzip.GzipFile(
                filename="", fileobj=file, mode="wb", compresslevel=_LEVEL, mtime=0
            ) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for member in members(kit):
                process.check_stopped()
                self._add(tar, kit, member, mtime)

    def _add(self, tar: tarfile.TarFile, kit: Kit, member: KitMember, mtime: int) -> None:
        info = tarfile.TarInfo(f"{kit.directory}/{member.path}")
        info.mode, info.mtime = member.mode, mtime
        content = member.content
        if member.same_as:
            info.type, info.linkname = tarfile.LNKTYPE, f"{kit.directory}/{member.same_as}"
            tar.addfile(info)
        elif isinstance(content, KitArtifact):
            info.size = content.size
            with self._artifacts.open(content.sha256) as stored:
                tar.addfile(info, _Checked(stored, content, member.path))
        else:
            info.size = len(content.content)
            tar.addfile(info, io.BytesIO(content.content))


class _Checked(io.RawIOBase):
    """A stored file that raises ArtifactError at its end if its sha256 is wrong."""

    def __init__(self, file: BinaryIO, artifact: KitArtifact, path: str) -> None:
        self._file, self._remaining, self._sha256, self._path = (
            file,
            artifact.size,
            artifact.sha256,
            path,
        )
        self._digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        process.check_stopped()
        chunk = self._file.read(size)
        self._digest.update(chunk)
        self._remaining -= len(chunk)
        if (self._remaining <= 0 and self._digest.hexdigest() != self._sha256) or (
            not chunk and self._remaining > 0
        ):
            raise ArtifactError(
                f"{self._path} in the artifact store is damaged (sha256 {self._sha256})"
            )
        return chunk


def _digest(kit_members: Sequence[KitMember]) -> str:
    """Digest of the kit's content: of SHA256SUMS, the last member, which covers all others."""
    last = kit_members[-1].content
    assert not isinstance(last, KitArtifact)
    return hashlib.sha256(last.content).hexdigest()[:16]


def _forget_old(folder: Path) -> None:
    for old in sorted(folder.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)
