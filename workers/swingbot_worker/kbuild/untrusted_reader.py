"""Read the objects of a build in a child process with limits of memory and time.

Whatever a build leaves may be crafted so that reading it takes any amount of memory. The child has
no capability but to read files and no network, writes to two files that this process opens for it,
and answers with one short JSON document. A child that exceeds a limit has failed to read the build;
the worker is not affected.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from swingbot_worker import InfraError, process
from swingbot_worker.kbuild.elf import NotAnObject

MIB: Final = 1 << 20
# Anonymous memory in bytes. The vmlinux and objects of a distribution kernel need less than half.
MEMORY_BYTES: Final = 1_536 * MIB
# Files are mapped, too, and may have 2 GB.
_ADDRESS_BYTES: Final = MEMORY_BYTES + 4_096 * MIB
CPU_SECONDS: Final = 900
DEADLINE_SECONDS: Final = 1_200.0
_FILE_BYTES: Final = 256 * MIB  # of the record and of the cached rows; a distribution has 40 MB
_ANSWER_BYTES: Final = 64 << 10
_CHILD: Final = "from swingbot_worker.kbuild.untrusted_reader import main; main()"
_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
_TRY_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReader:
    """Reads the finished build in the object directory `objects` of `source`."""

    source: Path
    objects: Path
    memory_bytes: int = MEMORY_BYTES
    seconds: float = DEADLINE_SECONDS

    def sizes(self) -> dict[str, int]:
        """Return the bytes of text, data and bss of vmlinux. Raises NotAnObject or InfraError."""
        sizes = self._answer("sizes").get("sizes")
        names = ("text", "data", "bss")
        if not isinstance(sizes, dict) or not all(type(sizes.get(name)) is int for name in names):
            raise NotAnObject("its sizes could not be read")
        return {name: sizes[name] for name in names}

    def remember_objects(self) -> None:
        """Cache a row for each linked object. Raises NotAnObject or InfraError."""
        self._answer("rows", memory=self._memory)

    def write_record(self, target: Path, compiler_version: str, *, remember: bool) -> None:
        """Write the record of functions to `target`; with `remember`, cache the rows as well.

        Raises NotAnObject or InfraError.
        """
        memory = self._memory if remember else None
        self._answer("record", record=target, memory=memory, compiler_version=compiler_version)

    @property
    def _memory(self) -> Path:
        from swingbot_worker.kbuild import functions

        return self.objects / functions.MEMORY

    def _answer(
        self,
        task: str,
        *,
        record: Path | None = None,
        memory: Path | None = None,
        compiler_version: str = "",
    ) -> dict[str, Any]:
        with (
            tempfile.TemporaryFile() as said,
            tempfile.TemporaryFile() as recorded,
            tempfile.TemporaryFile() as rows,
        ):
            request = {
                "task": task,
                "source": str(self.source),
                "objects": str(self.objects),
                "compiler_version": compiler_version,
                "record": recorded.fileno(),
                "rows": rows.fileno() if memory is not None else None,
            }
            start = process.Start(
                cwd=Path("/"),
                env={**_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=json.dumps(request).encode(),
                pass_fds=(recorded.fileno(), rows.fileno()),
                stdout=said.fileno(),
            )
            done = process.run(self._argv(), timeout=self.seconds, start=start)
            said.seek(0)
            answer = _checked(done, said.read(_ANSWER_BYTES + 1))
            for path, file in ((record, recorded), (memory, rows)):
                if path is not None:
                    file.seek(0)
                    with path.open("wb") as target:
                        shutil.copyfileobj(file, target)
        return answer

    def _argv(self) -> list[str]:
        limits = {
            "as": self.memory_bytes + _ADDRESS_BYTES - MEMORY_BYTES,
            "data": self.memory_bytes,
            "cpu": CPU_SECONDS,
            "fsize": _FILE_BYTES,
            "core": 0,
            "memlock": 0,
            "nofile": 64,
        }
        return [
            *("choom", "-n", "1000", "--"),
            *_apart(),
            *("prlimit", *(f"--{name}={value}:{value}" for name, value in limits.items()), "--"),
            *(sys.executable, "-B", "-P", "-c", _CHILD),
        ]


@cache
def _apart() -> tuple[str, ...]:
    """Return the command that drops the privileges and the network that this host lets us drop."""
    if os.geteuid() != 0:
        return ("setpriv", "--no-new-privs", "--")
    capabilities = (
        *("setpriv", "--no-new-privs", "--inh-caps=-all"),
        *("--bounding-set=-all,+dac_read_search", "--"),
    )
    alone = ("unshare", "--net", "--ipc", "--")
    tried = process.output([*alone, "true"], timeout=_TRY_SECONDS, env=_ENVIRONMENT)
    return (*alone, *capabilities) if tried.rc == 0 else capabilities


def _checked(done: process.CompletedCommand, text: bytes) -> dict[str, Any]:
    if done.timed_out:
        raise NotAnObject("reading what the build left took too long")
    if done.rc < 0:
        raise NotAnObject(f"reading what the build left was ended by signal {-done.rc}")
    try:
        answer = json.loads(text) if len(text) <= _ANSWER_BYTES else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        shown = text[-300:].decode(errors="replace")
        raise InfraError(f"The reader of builds failed with status {done.rc}: {shown!r}.")
    if "refused" in answer:
        raise NotAnObject(str(answer["refused"])[:500])
    return answer


def _read(request: dict[str, Any]) -> dict[str, Any]:
    """Do one task in the child."""
    from swingbot_worker.kbuild import functions, objects

    source, directory = Path(request["source"]), Path(request["objects"])
    if request["task"] == "sizes":
        return {"sizes": objects.sizes(directory / "vmlinux")}
    rows = None if request["rows"] is None else open(request["rows"], "w")  # noqa: SIM115
    if request["task"] == "rows":
        functions.read_objects(source, directory, keep=rows)
    else:
        record = functions.build_record(source, directory, request["compiler_version"], keep=rows)
        with open(request["record"], "wb") as file:
            file.write(record)
    if rows is not None:
        rows.close()
    return {}


def main() -> None:
    """Read a request from stdin and print the answer."""
    try:
        answer = _read(json.load(sys.stdin))
    except NotAnObject as error:
        answer = {"refused": str(error)[:500]}
    except (MemoryError, RecursionError):
        answer = {"refused": "reading what the build left needs too much memory"}
    except OSError as error:
        answer = {"refused": f"what the build left cannot be read ({str(error)[:300]})"}
    sys.stdout.write(json.dumps(answer))
