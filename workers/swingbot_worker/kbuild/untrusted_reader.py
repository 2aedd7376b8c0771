"""Read a finished build in a child process with limits of memory and time, behind the walls."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from swingbot_jobs.contract.trust import Trust
from swingbot_worker import InfraError, LimitReached, limits
from swingbot_worker.kbuild import functions, objects
from swingbot_worker.kbuild.make import BuildFailed
from swingbot_worker.readers.limited_reader import CannotRead, LimitedReader, ReaderStopped
from swingbot_worker.walls.sandbox import Sandbox

MIB: Final = 1 << 20
_SIZES: Final = ("text", "data", "bss")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedParts:
    """What to read, and the files to write it to.

    `hashes` receives the hash of each object, `record` the record of functions, `script` the linker
    script of `layout`. With `remember`, the next build reads only the objects that have changed.
    """

    hashes: Path | None = None
    record: Path | None = None
    compiler_version: str = ""
    script: Path | None = None
    layout: int = 0
    remember: bool = False
    sizes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltParts:
    """What was read. `no_record` and `no_layout` say why there is none; None if there is one."""

    sizes: dict[str, int] = field(default_factory=dict)
    no_record: str | None = None
    no_layout: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReader:
    """Reads the finished build in the object directory `objects` of `source`.

    `sandbox` is that of the build; None on a host without walls.
    """

    source: Path
    objects: Path
    sandbox: Sandbox | None
    trust: Trust = "untrusted"
    memory_bytes: int = limits.KERNEL_READER_BYTES
    seconds: float = limits.KERNEL_READER_SECONDS

    def lost_lines(self, fragments: Sequence[str], config: IO[bytes]) -> list[list[str]]:
        """Return the lines of each fragment that the open .config does not have.

        Raises BuildFailed or InfraError.
        """
        task = {"config": config.fileno(), "fragments": list(fragments)}
        try:
            lost = self._child(see_objects=False).answer(task, [config]).get("lost")
        except CannotRead as error:
            raise _unreadable(".config", error) from None
        known = [set(fragment.splitlines()) for fragment in fragments]
        if (
            not isinstance(lost, list)
            or len(lost) != len(known)
            or not all(
                isinstance(lines, list) and all(line in of_one for line in lines)
                for lines, of_one in zip(lost, known, strict=True)
            )
        ):
            raise BuildFailed("The build left a .config that could not be checked.", [])
        return lost

    def read(self, wanted: WantedParts, *, script: IO[bytes] | None = None) -> BuiltParts:
        """Read the parts in one child. `script` is the open linker script of the kernel.

        What cannot be made is not written. Raises BuildFailed or InfraError.
        """
        try:
            return self._read(wanted, script)
        except CannotRead as error:
            if wanted.record is None and not (wanted.remember and wanted.script):
                raise _unreadable("vmlinux", error) from None
            # the record may be what exceeded a limit, and a kernel is usable without one
            less = self.read(replace(wanted, record=None, remember=False), script=script)
            return replace(less, no_record=str(error))

    def _read(self, wanted: WantedParts, script: IO[bytes] | None) -> BuiltParts:
        targets = self._targets(wanted)
        with ExitStack() as stack:
            files = {name: stack.enter_context(tempfile.TemporaryFile()) for name in targets}
            task = {
                "source": str(self.source),
                "objects": str(self.objects),
                "sizes": wanted.sizes,
                "layout": wanted.layout,
                "script": None if script is None else script.fileno(),
                "compiler_version": wanted.compiler_version,
                "files": {name: file.fileno() for name, file in files.items()},
            }
            opened = [*files.values(), *([] if script is None else [script])]
            parts = _parts(self._child(see_objects=True).answer(task, opened), wanted)
            for name, file in files.items():
                if parts.no_record is not None and name in ("record", "rows"):
                    continue
                if parts.no_layout is not None and name == "script":
                    continue
                file.seek(0)
                with targets[name].open("wb") as target:
                    shutil.copyfileobj(file, target)
        return parts

    def _targets(self, wanted: WantedParts) -> dict[str, Path]:
        """Return the files that the child fills, by their name in the task."""
        places: dict[str, Path | None] = {
            "hashes": wanted.hashes,
            "hash_rows": self.objects / objects.MEMORY if wanted.hashes else None,
            "script": wanted.script,
            "record": wanted.record,
            "rows": self.objects / functions.MEMORY if wanted.remember else None,
        }
        return {name: path for name, path in places.items() if path is not None}

    def _child(self, *, see_objects: bool) -> LimitedReader:
        paths = tuple(dict.fromkeys((self.source, self.objects))) if see_objects else ()
        others = () if not paths else self.source.glob("o-*")
        return LimitedReader(
            module="swingbot_worker.kbuild.build_task",
            sandbox=self.sandbox,
            trust=self.trust,
            memory_bytes=self.memory_bytes,
            seconds=self.seconds,
            cpu_seconds=limits.KERNEL_READER_CPU_SECONDS,
            visible=paths,
            hidden=tuple(sorted(path for path in others if path != self.objects)),
        )


def _unreadable(name: str, error: CannotRead) -> BuildFailed | InfraError:
    if isinstance(error, ReaderStopped):
        return LimitReached(f"The {name} that the build left could not be read: {error}.")
    return BuildFailed(f"The build left an invalid {name}: {error}.", [])


def _parts(answer: Mapping[str, Any], wanted: WantedParts) -> BuiltParts:
    """Return the answer, whose form is checked. Raises CannotRead."""
    sizes = answer.get("sizes", {})
    valid = isinstance(sizes, dict) and all(
        type(sizes.get(name)) is int for name in _SIZES if wanted.sizes
    )
    if not valid:
        raise CannotRead("its reader gave an invalid answer")
    return BuiltParts(
        sizes={name: sizes[name] for name in _SIZES if wanted.sizes},
        no_record=_sentence(answer.get("no_record")),
        no_layout=_sentence(answer.get("no_layout")),
    )


def _sentence(text: object) -> str | None:
    return None if text is None else str(text)[:500]
