"""The record of a build's code (functions.json.gz), read from the linked objects.

Each compiled object is read once; later calls use the cached row.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from pathlib import Path
from typing import IO, Any

from swingbot_jobs.kernel_diff import VERSION, object_row, symbol_table, write_record
from swingbot_worker import limits
from swingbot_worker.digest import sha256
from swingbot_worker.kbuild.archive import members
from swingbot_worker.kbuild.elf import NotAnObject, read_elf
from swingbot_worker.kbuild.normal_form import normal_parts
from swingbot_worker.kbuild.objects import compiled_objects

MEMORY = ".swingbot-functions.json"  # below the object directory
# Those of kbuild's compiler options that affect the generated code.
_TELLING = ("-O", "-f", "-m", "-g", "-std=", "-D__KERNEL__", "--target=")
_PATHS = ("-fmacro-prefix-map=", "-ffile-prefix-map=", "-fdebug-prefix-map=")


def build_record(
    source: Path, objects: Path, compiler_version: str, *, keep: IO[str] | None = None
) -> bytes:
    """Return the record of the finished build in `objects`.

    `keep` is as in `read_objects`. Raises NotAnObject or OSError.
    """
    vmlinux = read_elf(objects / "vmlinux")
    return write_record(
        compiler=compiler_version,
        flags=_flags(objects),
        sizes=vmlinux.sizes(),
        symbols=symbol_table(vmlinux.letters()),
        objects=read_objects(source, objects, keep=keep),
    )


def linked_objects(source: Path, objects: Path) -> list[str]:
    """Return the paths of the linked objects, relative to the object directory.

    Since Linux 6.1 an archive names them, and each lib.a has the objects that are linked on demand.
    For older kernels, all compiled objects are returned.
    """
    if not (objects / "vmlinux.a").exists():
        return compiled_objects(source, objects, (".c", ".S"))
    archives = [
        "vmlinux.a",
        *(
            str(path.relative_to(objects))
            for pattern in ("lib/lib.a", "arch/*/lib/lib.a")
            for path in objects.glob(pattern)
        ),
    ]
    paths: set[str] = set()
    for archive in archives:
        paths.update(
            os.path.normpath(os.path.join(os.path.dirname(archive), name))
            for name in members(objects / archive)
            if "\0" not in name
        )
    return sorted(
        path for path in paths if not path.startswith(("/", "../")) and (objects / path).is_file()
    )


def source_of(objects: Path) -> Path:
    """Return the source of an object directory.

    That is the target of kbuild's link `source`, the directory itself, or its parent.
    """
    places = (objects / "source", objects, objects.resolve().parent)
    return next(
        (place.resolve() for place in places if (place / "init" / "main.c").is_file()), objects
    )


def compiler_of(objects: Path) -> str:
    """Return the compiler that kbuild recorded in .config (since Linux 5.8), or `unknown`."""
    config = objects / ".config"
    match = (
        re.search(
            r'^CONFIG_CC_VERSION_TEXT="(.*)"$', config.read_text(errors="replace"), re.MULTILINE
        )
        if config.is_file()
        else None
    )
    return match[1] if match else "unknown"


def read_objects(
    source: Path, objects: Path, *, keep: IO[str] | None = None
) -> dict[str, list[Any]]:
    """Return a row for each linked object. Rows of unchanged objects come from the file MEMORY.

    `keep` receives the next content of that file. Raises NotAnObject or OSError.
    """
    known = _remembered(objects / MEMORY)
    fresh: dict[str, list[Any]] = {}
    deadline = time.monotonic() + limits.FUNCTIONS_SECONDS
    for path in linked_objects(source, objects):
        if time.monotonic() > deadline:
            raise NotAnObject(
                f"reading the objects took longer than {limits.FUNCTIONS_SECONDS:g} s"
            )
        state = os.stat(objects / path)
        stamp = [state.st_mtime_ns, state.st_size]
        old = known.get(path)
        fresh[path] = old if old is not None and old[0] == stamp else [stamp, _row(objects / path)]
    if keep is not None:
        json.dump({"version": VERSION, "objects": fresh}, keep)
    return {path: row for path, (_, row) in fresh.items()}


def _row(path: Path) -> list[Any]:
    elf = read_elf(path)
    return object_row(sha256(path), elf.sizes(), *normal_parts(elf))


def _remembered(memory: Path) -> dict[str, list[Any]]:
    try:
        known = json.loads(memory.read_text())
        return dict(known["objects"]) if known["version"] == VERSION else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _flags(objects: Path) -> list[str]:
    """Return the code-changing compiler options of init/main.o.

    They come from its .cmd file; without one, the list is empty.
    """
    try:
        with (objects / "init" / ".main.o.cmd").open(errors="replace") as file:
            line = file.readline(limits.COMMAND_CHARACTERS)
        words = shlex.split(line.partition(":=")[2].partition(" ; ")[0])
    except (OSError, ValueError):
        return []
    return [word for word in words if word.startswith(_TELLING) and not word.startswith(_PATHS)]
