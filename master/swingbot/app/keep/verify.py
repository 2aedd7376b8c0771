"""`swingbot backup --verify`: read every byte of a backup again and report any damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from swingbot.app.keep.progress import CopyProgress
from swingbot.core.keep.manifest import BadBackup, Manifest, read_manifest, read_sums

MANIFEST: Final = "manifest.json"
SUMS: Final = "SHA256SUMS"


def load_manifest(directory: Path) -> Manifest:
    """Raises BadBackup if `directory` is not a whole backup."""
    file = directory / MANIFEST
    try:
        return read_manifest(json.loads(file.read_text()), str(file))
    except BadBackup:
        raise
    except (OSError, ValueError):
        raise BadBackup(
            f"{directory} is not a whole swingbot backup: cannot read {MANIFEST} in it"
        ) from None


def listed_files(directory: Path, manifest: Manifest) -> dict[str, str]:
    """Path -> SHA-256 of the files of a backup, as its list says. Raises BadBackup."""
    file = directory / SUMS
    try:
        listed = read_sums(file.read_text(), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise BadBackup(f"cannot read {file} ({error}); use another backup") from None
    if len(listed) != manifest.files:
        raise BadBackup(
            f"{file} lists {len(listed)} files, but the backup has {manifest.files}; use another"
            " backup"
        )
    return listed


def sums(directory: Path, announce: Callable[[str], None]) -> dict[str, str]:
    """Path -> SHA-256 of the files below `directory`; empty for one that cannot be read."""
    files = sorted(path for folder in directory.iterdir() for path in folder.rglob("*"))
    sizes = {path: path.stat().st_size for path in files if path.is_file()}
    progress = CopyProgress("checksums", len(sizes), sum(sizes.values()), announce)
    found = {}
    for path, size in sizes.items():
        found[str(path.relative_to(directory))] = _sha256(path)
        progress.add(size)
    return found


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def verify(directory: Path, announce: Callable[[str], None]) -> list[str]:
    """Problems of a backup, one sentence each; empty if it is intact. Raises BadBackup."""
    listed = listed_files(directory, load_manifest(directory))
    found = sums(directory, announce)
    return [
        f"{directory / path} is {'damaged' if path in found else 'missing'}"
        for path, sha256 in listed.items()
        if found.get(path) != sha256
    ]
