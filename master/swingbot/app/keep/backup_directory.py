"""The directory of a backup.

    DIR/swingbot-backup.json               says that it is one
    DIR/artifacts/ab/cdef....zst           raw results by content, shared by all generations
    DIR/mail/ab/cdef...                    mails by content, shared as well
    DIR/mirror.git                         git objects of all generations; refs/backup/<generation>/...
    DIR/generations/20260102T030405Z/      manifest.json, artifacts.list, database/<table>.copy.zst

A generation appears under its name when all of it is on the disk; what an interrupted one left is used by the next.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swingbot.core.keep.generation import FORMAT, BadBackup, Manifest, is_generation, read_manifest

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
        """Make it if there is none. Raises BadBackup for a directory that is something else, OSError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        mark = self.directory / MARK
        if mark.exists():
            self.check()
            return
        if any(self.directory.iterdir()):
            raise BadBackup(
                f"{self.directory} is not empty and no backup of swingbot; name another directory"
            )
        self.generations.mkdir()
        _write_whole(mark, json.dumps({"format": FORMAT}) + "\n")
        self.directory.chmod(0o700)  # mails and results of embargoed work are in it

    def check(self) -> None:
        """Raise BadBackup if the directory is none of ours."""
        try:
            document = json.loads((self.directory / MARK).read_text())
        except (OSError, ValueError):
            raise BadBackup(
                f"{self.directory} is no backup of swingbot: there is no readable {MARK} in it"
            ) from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise BadBackup(
                f"{self.directory} has another format than {FORMAT}: use the swingbot that made it"
            )

    def names(self) -> list[str]:
        """Generations that are whole, oldest first."""
        return sorted(path.name for path in self.generations.glob("*") if is_generation(path.name))

    def choose(self, wanted: str | None) -> str:
        """The generation of that name, or the latest. Raises BadBackup."""
        self.check()
        names = self.names()
        if not names:
            raise BadBackup(
                f"{self.directory} has no generation that is whole; run `swingbot backup {self.directory}`"
            )
        if wanted is not None and wanted not in names:
            raise BadBackup(
                f"{self.directory} has no generation {wanted}; there are {', '.join(names)}"
            )
        return wanted or names[-1]

    def manifest(self, name: str) -> Manifest:
        file = self.generations / name / "manifest.json"
        try:
            return read_manifest(json.loads(file.read_text()), str(file))
        except (OSError, ValueError) as error:
            if isinstance(error, BadBackup):
                raise
            raise BadBackup(f"{file} cannot be read ({error}); take another generation") from None

    def artifact_list(self, name: str) -> Iterator[str]:
        """The names of a generation's artifacts as they stand in the store: `ab/cdef....zst`."""
        with (self.generations / name / "artifacts.list").open() as file:
            for line in file:
                yield line.rstrip("\n")

    def letter(self, sha256: str) -> Path:
        return self.mail / sha256[:2] / sha256[2:]


def copy_whole(source: Path, target: Path, *, link: bool = False) -> bool:
    """Let `target` appear as a copy of `source`, or as another name of it; False if that was not possible and it was copied."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        try:
            os.link(source, target)
            return True
        except OSError:
            pass  # another file system, or one without links
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
