"""Programs that were built here: their binaries, and a note about how they were built."""

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
    """One program as it was built: `sha256` of each binary by name, and `version` in words."""

    program: str
    version: str
    directory: Path
    sha256: Mapping[str, str]

    def binary(self, name: str) -> Path | None:
        """The path of a binary; None if this build has none of that name.

        Raises InfraError if the file is not what was built.
        """
        if name not in self.sha256:
            return None
        path = self.directory / name
        if not path.is_file() or digest.sha256(path) != self.sha256[name]:
            raise InfraError(
                f"{path} is not the file that was built, by the note beside it;"
                f" build {self.program} again (swingbot-worker program build)."
            )
        return path


def place(cache: Path, program: str) -> Path:
    """The directory of a program's binaries."""
    return cache / "programs" / program


def find(cache: Path, program: str) -> Installed | None:
    """The build of `program` on this host; None without one. Raises InfraError for a damaged note."""
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
        raise InfraError(f"{directory / NOTE} names a binary that is no file name.")
    return Installed(program=program, version=version, directory=directory, sha256=sha256)


def described(content: bytes) -> dict[str, Any]:
    """What the note says of one binary."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def install(cache: Path, program: str, binaries: Mapping[str, bytes], note: dict[str, Any]) -> Path:
    """Put binaries and note in the place of what was built before. Returns the directory.

    A boot that reads meanwhile finds the old program, the new one, or none and is tried again.
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
