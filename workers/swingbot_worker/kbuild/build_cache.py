"""Cache of finished kernel builds under <cache>/kernels, so that no build is repeated."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from swingbot_worker.digest import sha256

FILES = ("bzImage", "config", "System.map", "build.log", "objects.json", "functions.json.gz")
RESULT = "result.json"
# About 7 MB each; the least recently used ones are deleted.
LIMIT = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedBuild:
    """The result of a build; `files` are the names and sha256 digests of its files."""

    status: str  # built or failed
    reason: str | None
    compiler_version: str
    sizes: dict[str, int]
    errors: list[str]
    files: dict[str, str]
    walls: list[str] = field(default_factory=list)  # names of the walls around the build


class BuildCache:
    """The store of finished builds.

    Entries are written atomically and verified when they are read.
    """

    def __init__(self, cache: Path) -> None:
        self._root = cache / "kernels"

    def fetch(self, name: str, out: Path) -> CachedBuild | None:
        """Copy the build `name` to `out`.

        Returns None if it is missing, or damaged and therefore deleted.
        """
        entry = self._root / name
        try:
            result = CachedBuild(**json.loads((entry / RESULT).read_text()))
            for file, digest in result.files.items():
                shutil.copyfile(entry / file, out / file)
                if file not in FILES or sha256(out / file) != digest:
                    raise ValueError(f"{file} has changed in the cache")
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, AttributeError):
            shutil.rmtree(entry, ignore_errors=True)
            return None
        os.utime(entry)
        return result

    def keep(self, name: str, result: CachedBuild, out: Path) -> None:
        """Store the files of `result`, which are in `out`."""
        self._root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self._root) as parent:
            fresh = Path(parent) / "entry"
            fresh.mkdir()
            for file in result.files:
                shutil.copyfile(out / file, fresh / file)
            (fresh / RESULT).write_text(json.dumps(asdict(result)))
            shutil.rmtree(self._root / name, ignore_errors=True)
            fresh.rename(self._root / name)
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        by_age = sorted(
            self._root.glob("[0-9a-f]*"), key=lambda path: path.stat().st_mtime, reverse=True
        )
        for path in by_age[LIMIT:]:
            shutil.rmtree(path, ignore_errors=True)
