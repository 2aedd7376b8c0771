"""The parts of a finished build: its sizes, and the hash of every object compiled from C.

The hashes show later which functions a commit can have changed, and which commits cannot affect
a benchmark.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO

from swingbot_worker import limits
from swingbot_worker.digest import sha256
from swingbot_worker.kbuild.elf import read_elf

MEMORY = ".swingbot-objects.json"  # below the object directory
# Code that is in the image but does not run after boot, or that is not part of the running kernel.
NOT_BUILT_IN = (
    "arch/x86/boot",
    "arch/x86/realmode",
    "arch/x86/purgatory",
    "scripts",
    "tools",
    "certs",
    "usr",
)


def sizes(vmlinux: Path) -> dict[str, int]:
    """Return the bytes of text, data and bss of vmlinux as binutils' `size` counts them.

    Raises NotAnObject or OSError.
    """
    return read_elf(vmlinux).sizes()


def object_hashes(source: Path, objects: Path, *, keep: IO[str]) -> dict[str, str]:
    """Return the sha256 of each object compiled from a .c file of the same name.

    The keys are paths relative to the object directory. Only objects whose time stamp or size
    differs from the file MEMORY are read; `keep` receives the next content of that file.
    """
    known = _remembered(objects / MEMORY)
    fresh: dict[str, list[object]] = {}
    for path in compiled_objects(source, objects):
        state = os.stat(objects / path)
        old = known.get(path)
        same = old is not None and old[:2] == [state.st_mtime_ns, state.st_size]
        fresh[path] = (
            old
            if old is not None and same
            else [state.st_mtime_ns, state.st_size, sha256(objects / path)]
        )
    json.dump(fresh, keep)
    return {path: str(entry[2]) for path, entry in sorted(fresh.items())}


def _remembered(memory: Path) -> dict[str, list[object]]:
    try:
        with memory.open("rb") as file:
            known = json.loads(file.read(limits.OBJECT_HASHES_BYTES))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def compiled_objects(source: Path, objects: Path, suffixes: tuple[str, ...] = (".c",)) -> list[str]:
    """Return the objects of the image that have a source file with one of `suffixes`."""
    paths = []
    for parent, directories, names in os.walk(objects):
        below = os.path.relpath(parent, objects)
        directories[:] = [
            name for name in directories if os.path.normpath(f"{below}/{name}") not in NOT_BUILT_IN
        ]
        for name in names:
            path = os.path.normpath(f"{below}/{name}")
            if name.endswith(".o") and any(
                (source / f"{path[:-2]}{suffix}").exists() for suffix in suffixes
            ):
                paths.append(path)
    return paths
