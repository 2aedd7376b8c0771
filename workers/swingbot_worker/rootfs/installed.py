"""Programs that were built on this host: their binaries and a note about the build."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from swingbot_worker import InfraError, digest, lease

NOTE: Final = "program.json"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One installed program: `sha256` of each binary by name, and `version` as text."""

    program: str
    version: str
    directory: Path
    sha256: Mapping[str, str]

    def binary(self, name: str) -> Path | None:
        """Return the path of a binary, or None if this build does not have it.

        Raises InfraError if the file has changed since the build.
        """
        if name not in self.sha256:
            return None
        path = self.directory / name
        if not path.is_file() or digest.sha256(path) != self.sha256[name]:
            raise InfraError(
                f"{path} has changed since it was built, according to {NOTE};"
                f" build {self.program} again (swingbot-worker program build)."
            )
        return path


def place(cache: Path, program: str) -> Path:
    """Return the directory of a program's binaries."""
    return cache / "programs" / program


def find(cache: Path, program: str) -> Installed | None:
    """Return the build of `program` on this host, or None. Raises InfraError for a damaged note."""
    directory = place(cache, program)
    try:
        note = json.loads((directory / NOTE).read_text())
        sha256 = {str(name): str(one["sha256"]) for name, one in note["binaries"].items()}
        version = str(note["version"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InfraError(
            f"{directory / NOTE} cannot be read ({error}); build {program} again"
            " (swingbot-worker program build)."
        ) from error
    if not all(_NAME.fullmatch(name) for name in sha256):
        raise InfraError(f"{directory / NOTE} has an invalid binary name; build {program} again.")
    return Installed(program=program, version=version, directory=directory, sha256=sha256)


def described(content: bytes) -> dict[str, Any]:
    """Return the note's entry for one binary."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def install(cache: Path, program: str, binaries: Mapping[str, bytes], note: dict[str, Any]) -> Path:
    """Replace the previous build with these binaries and this note. Returns the directory.

    A boot that reads at the same time gets the old program, the new one, or none and is retried.
    """
    directory = place(cache, program)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with lease.cache_entry(directory):
        fresh = Path(tempfile.mkdtemp(prefix=f".{program}-", dir=directory.parent))
        old = fresh.with_name(f"{fresh.name}-old")
        try:
            fresh.chmod(0o755)
            for name, content in binaries.items():
                _write(fresh / name, content, 0o755)
            _write(
                fresh / NOTE, (json.dumps(note, indent=1, sort_keys=True) + "\n").encode(), 0o644
            )
            if directory.exists():
                directory.rename(old)
            fresh.rename(directory)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
    return directory


def _write(path: Path, content: bytes, mode: int) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode)
