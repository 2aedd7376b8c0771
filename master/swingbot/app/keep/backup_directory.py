"""Layout of a backup directory.

    DIR/swingbot-backup.json               marks the directory as a backup
    DIR/artifacts/ab/cdef....zst           raw results by content, shared by all generations
    DIR/mail/ab/cdef...                    mails by content, also shared
    DIR/mirror.git                         git objects of all generations, refs/backup/NAME/...
    DIR/generations/20260102T030405Z/      manifest.json, artifacts.list, database/<table>.copy.zst

A generation gets its final name once it is completely on disk. Files of an interrupted backup are
reused by the next one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swingbot.core.keep.generation import (
    FORMAT,
    BadBackup,
    Manifest,
    check_format,
    is_generation,
    read_manifest,
)

MARK: Final = "swingbot-backup.json"
_CHUNK: Final = 1 << 20


class BackupDirectory:
    """One backup directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.artifacts = self.directory / "artifacts"
        self.mail = self.directory / "mail"
        self.mirror = self.directory / "mirror.git"
        self.generations = self.directory / "generations"

    def create(self) -> None:
        """Create the directory if necessary. Raises BadBackup if it is not a backup, OSError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        mark = self.directory / MARK
        if mark.exists():
            self.check()
            return
        if any(self.directory.iterdir()):
            raise BadBackup(
                f"{self.directory} is neither empty nor a swingbot backup; choose another directory"
            )
        self.generations.mkdir()
        _write_whole(mark, json.dumps({"format": FORMAT}) + "\n")
        self.directory.chmod(0o700)  # contains mails and results of embargoed work

    def check(self) -> None:
        """Raise BadBackup if the directory is not a swingbot backup."""
        try:
            document = json.loads((self.directory / MARK).read_text())
        except (OSError, ValueError):
            raise BadBackup(
                f"{self.directory} is not a swingbot backup: cannot read {MARK} in it"
            ) from None
        check_format(
            document.get("format") if isinstance(document, dict) else None, str(self.directory)
        )

    def names(self) -> list[str]:
        """Complete generations, oldest first."""
        return sorted(path.name for path in self.generations.glob("*") if is_generation(path.name))

    def choose(self, wanted: str | None) -> str:
        """Name of the `wanted` generation, or of the latest. Raises BadBackup."""
        self.check()
        names = self.names()
        if not names:
            raise BadBackup(
                f"{self.directory} has no complete generation; run `swingbot backup"
                f" {self.directory}`"
            )
        if wanted is not None and wanted not in names:
            raise BadBackup(
                f"generation {wanted} does not exist in {self.directory}; use one of"
                f" {', '.join(names)}"
            )
        return wanted or names[-1]

    def manifest(self, name: str) -> Manifest:
        file = self.generations / name / "manifest.json"
        try:
            return read_manifest(json.loads(file.read_text()), str(file))
        except (OSError, ValueError) as error:
            if isinstance(error, BadBackup):
                raise
            raise BadBackup(f"cannot read {file} ({error}); use another generation") from None

    def artifact_list(self, name: str) -> Iterator[str]:
        """Paths of a generation's artifacts in the store, such as `ab/cdef....zst`."""
        with (self.generations / name / "artifacts.list").open() as file:
            for line in file:
                yield line.rstrip("\n")

    def letter(self, sha256: str) -> Path:
        return self.mail / sha256[:2] / sha256[2:]


def copy_whole(source: Path, target: Path, *, link: bool = False) -> bool:
    """Copy or hard-link `source` to `target` atomically; False if it had to be copied instead."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        try:
            os.link(source, target)
            return True
        except OSError:
            pass  # another file system, or no support for hard links
    temporary = target.with_name(target.name + ".part")
    shutil.copyfile(source, temporary)
    temporary.replace(target)
    return not link


def _write_whole(target: Path, text: str) -> None:
    temporary = target.with_name(target.name + ".part")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(target)


def write_json(target: Path, document: object) -> None:
    _write_whole(target, json.dumps(document, indent=1, sort_keys=True) + "\n")
