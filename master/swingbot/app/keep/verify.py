"""`swingbot backup --verify`: read every byte of a generation again and report any damage."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from swingbot.adapters.artifacts import GONE, ArtifactDirectory
from swingbot.app.keep.backup import KeepError, git, refs
from swingbot.app.keep.backup_directory import BackupDirectory
from swingbot.app.keep.progress import BackupProgress, amount
from swingbot.core.keep.generation import BadBackup, Manifest
from swingbot.core.model.artifact import ArtifactError
from swingbot.core.text.numbers import count

_CHUNK: Final = 1 << 20
_ENTRY: Final = re.compile(r"([0-9a-f]{2})/([0-9a-f]{62})(\.zst|\.gone)")


def verify(backups: BackupDirectory, name: str, announce: Callable[[str], None]) -> list[str]:
    """Problems of a generation, one sentence each; empty if it is intact.

    Raises BadBackup if it is not a generation.
    """
    manifest = backups.manifest(name)
    problems = [
        *_database(backups, name, manifest),
        *_mail(backups, manifest),
        *_mirror(backups, name, manifest),
    ]
    announce(
        f"database, {len(manifest.letters)} mails and {len(manifest.refs)} refs of the mirror:"
        f" {_summary(len(problems))}"
    )
    damaged = list(_artifacts(backups, name, manifest, announce))
    announce(
        f"{manifest.artifacts} artifacts, {amount(manifest.artifact_bytes)}:"
        f" {_summary(len(damaged))}"
    )
    return problems + damaged


def _summary(problems: int) -> str:
    return count(problems, "problem") if problems else "intact"


def checked_path(entry: str) -> str:
    """Validate a line of a generation's list of artifacts. Raises BadBackup."""
    if _ENTRY.fullmatch(entry) is None:
        raise BadBackup(
            f"{entry[:80]!r} in the list of artifacts is not a valid path; use another generation"
        )
    return entry


def sha256_of(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _file_sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return sha256_of(file)
    except OSError:
        return None


def _database(backups: BackupDirectory, name: str, manifest: Manifest) -> Iterator[str]:
    for table in manifest.tables:
        file = backups.generations / name / "database" / f"{table.name}.copy.zst"
        if (actual := _file_sha256(file)) is None:
            yield f"cannot read {file}"
        elif actual != table.sha256:
            yield f"{file} has sha256 {actual}, expected {table.sha256}"


def _mail(backups: BackupDirectory, manifest: Manifest) -> Iterator[str]:
    for letter in manifest.letters:
        file = backups.letter(letter.sha256)
        if (actual := _file_sha256(file)) is None:
            yield f"cannot read mail {letter.name} ({file})"
        elif actual != letter.sha256:
            yield f"mail {letter.name} ({file}) is damaged"


def _mirror(backups: BackupDirectory, name: str, manifest: Manifest) -> Iterator[str]:
    if not manifest.refs:
        return
    try:
        stored = refs(backups.mirror, name)
        for ref, commit in manifest.refs.items():
            if stored.get(ref) != commit:
                actual = stored.get(ref, "missing")
                yield f"{backups.mirror}: refs/backup/{name}/{ref} is {actual}, expected {commit}"
        git(
            "-C",
            str(backups.mirror),
            "fsck",
            "--connectivity-only",
            "--no-dangling",
            "--no-progress",
        )
    except KeepError as error:
        yield f"{backups.mirror} is damaged: {error}"


def _artifacts(
    backups: BackupDirectory, name: str, manifest: Manifest, announce: Callable[[str], None]
) -> Iterator[str]:
    store = ArtifactDirectory(backups.artifacts)
    progress = BackupProgress("artifacts", manifest.artifacts, manifest.artifact_bytes, announce)
    for entry in backups.artifact_list(name):
        path = backups.artifacts / checked_path(entry)
        if entry.endswith(GONE):
            continue
        sha256 = entry[:2] + entry[3:65]
        try:
            progress.add(path.stat().st_size)
            with store.open(sha256) as file:
                actual = sha256_of(file)
            if actual != sha256:
                yield f"{path} is damaged: its content has sha256 {actual}"
        except FileNotFoundError:
            yield f"{path} is missing"
        except (ArtifactError, OSError) as error:
            yield f"cannot read {path}: {error}"
