"""The record of a build's code (functions.json.gz): read from the objects that are linked, once for each that was compiled."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from pathlib import Path
from typing import Any

from swingbot_jobs.kernel_diff import VERSION, object_row, symbol_table, write_record
from swingbot_worker.digest import sha256
from swingbot_worker.kbuild.archive import members
from swingbot_worker.kbuild.elf import NotAnObject, read_elf
from swingbot_worker.kbuild.normal_form import normal_parts
from swingbot_worker.kbuild.objects import compiled_objects

_MEMORY = ".swingbot-functions.json"
# A full build takes some seconds here; what takes minutes was made to.
_READ_SECONDS = 600.0
# Options that say what code comes out, of all that kbuild gives.
_TELLING = ("-O", "-f", "-m", "-g", "-std=", "-D__KERNEL__", "--target=")
_PATHS = ("-fmacro-prefix-map=", "-ffile-prefix-map=", "-fdebug-prefix-map=")


def build_record(
    source: Path, objects: Path, compiler_version: str, *, remember: bool = True
) -> bytes:
    """The record of the finished build in `objects`; with `remember`, a note there spares the next call what it knows.

    Raises NotAnObject or OSError.
    """
    vmlinux = read_elf(objects / "vmlinux")
    return write_record(
        compiler=compiler_version,
        flags=_flags(objects),
        sizes=vmlinux.sizes(),
        symbols=symbol_table(vmlinux.letters()),
        objects=read_objects(source, objects, remember=remember),
    )


def linked_objects(source: Path, objects: Path) -> list[str]:
    """Paths of the objects that the link takes, below the object directory.

    Since Linux 6.1 an archive names them; lib.a hold what is taken if something needs it. Older kernels: all that are compiled.
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
    found: set[str] = set()
    for archive in archives:
        found.update(
            os.path.normpath(os.path.join(os.path.dirname(archive), name))
            for name in members(objects / archive)
            if "\0" not in name
        )
    return sorted(
        path for path in found if not path.startswith(("/", "../")) and (objects / path).is_file()
    )


def source_of(objects: Path) -> Path:
    """The source of an object directory: where kbuild's link there points, the directory itself, or the one it lies in."""
    places = (objects / "source", objects, objects.resolve().parent)
    return next(
        (place.resolve() for place in places if (place / "init" / "main.c").is_file()), objects
    )


def compiler_of(objects: Path) -> str:
    """The compiler as kbuild noted it in .config (since Linux 5.8); `unknown` if it did not."""
    config = objects / ".config"
    found = (
        re.search(
            r'^CONFIG_CC_VERSION_TEXT="(.*)"$', config.read_text(errors="replace"), re.MULTILINE
        )
        if config.is_file()
        else None
    )
    return found[1] if found else "unknown"


def read_objects(source: Path, objects: Path, *, remember: bool = True) -> dict[str, list[Any]]:
    """A row for each linked object; those that are as they were at the last call come from memory. Raises NotAnObject or OSError."""
    memory = objects / _MEMORY
    known = _remembered(memory)
    fresh: dict[str, list[Any]] = {}
    deadline = time.monotonic() + _READ_SECONDS
    for path in linked_objects(source, objects):
        if time.monotonic() > deadline:
            raise NotAnObject(f"reading the objects took longer than {_READ_SECONDS:g} s")
        state = os.stat(objects / path)
        stamp = [state.st_mtime_ns, state.st_size]
        old = known.get(path)
        fresh[path] = old if old is not None and old[0] == stamp else [stamp, _row(objects / path)]
    if remember and fresh != known:
        memory.write_text(json.dumps({"version": VERSION, "objects": fresh}))
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
    """What the compiler was told for init/main.o, as kbuild noted it: the options that change code; none if there is no such note."""
    try:
        line = (objects / "init" / ".main.o.cmd").read_text(errors="replace").partition("\n")[0]
        words = shlex.split(line.partition(":=")[2].partition(" ; ")[0])
    except (OSError, ValueError):
        return []
    return [word for word in words if word.startswith(_TELLING) and not word.startswith(_PATHS)]
