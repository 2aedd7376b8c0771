"""Start a child that reads what a build or a boot left, and return its answer as data.

Whatever came from a kernel may be crafted so that reading it takes any amount of memory or time.
The child runs behind the walls of a build: it sees the files that it reads and swingbot's own code,
has no network, and writes to files that this process opens for it. On a host without walls it
has no capability but to read files, and no network. A child that exceeds a limit is stopped; the
worker is not affected.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

import swingbot_jobs
import swingbot_worker
from swingbot_jobs import resources
from swingbot_jobs.contract.trust import Trust
from swingbot_worker import InfraError, process
from swingbot_worker.limits import READER_ANSWER_BYTES, READER_OUTPUT_BYTES
from swingbot_worker.walls import OverLimit, Sandbox, cgroup
from swingbot_worker.walls.argv import View
from swingbot_worker.walls.sandbox import SandboxedCommand

MIB: Final = 1 << 20
# Beyond the child's own limit, for what the kernel holds for it: page cache, pages of its code.
_KERNEL_BYTES: Final = 512 * MIB
# Where no cgroup limits the child, the walls limit its address space, mapped files included.
_ADDRESS_BYTES: Final = 4_608 * MIB
_TMP_BYTES: Final = MIB
_START: Final = "from {module} import main; main()"
_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
_TRY_SECONDS: Final = 20.0
_PACKAGES: Final = (swingbot_worker, swingbot_jobs)


class CannotRead(Exception):
    """The files cannot be read; the message says why."""


class ReaderStopped(CannotRead):
    """A limit of ours ended the reader, which says nothing about the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedReader:
    """Runs the `main` of `module` in a child; `sandbox` is None where this host has no walls.

    `visible` are the paths that it may read, `hidden` directories below them that appear empty.
    """

    module: str
    sandbox: Sandbox | None
    memory_bytes: int
    seconds: float
    cpu_seconds: int
    trust: Trust = "untrusted"
    visible: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    def answer(self, task: Mapping[str, Any], files: Sequence[IO[bytes]] = ()) -> dict[str, Any]:
        """Return the child's answer. `files` are open in the child under the same numbers.

        Raises CannotRead, or InfraError if the child itself failed.
        """
        with tempfile.TemporaryDirectory(prefix="swingbot-reader-") as place:
            printed = Path(place) / "printed"
            with (Path(place) / "answer").open("w+b") as answer:
                request = {
                    "task": task,
                    "answer": answer.fileno(),
                    "memory_bytes": self.memory_bytes,
                    "cpu_seconds": self.cpu_seconds,
                }
                descriptors = (answer.fileno(), *(file.fileno() for file in files))
                done = self._run(json.dumps(request).encode(), descriptors, printed)
                answer.seek(0)
                return _checked(done, answer.read(READER_ANSWER_BYTES + 1), printed)

    def _run(
        self, request: bytes, descriptors: tuple[int, ...], printed: Path
    ) -> process.CompletedCommand:
        program = _START.format(module=self.module)
        if self.sandbox is not None:
            return self._behind_walls(self.sandbox, program, request, descriptors, printed)
        start = process.Start(
            cwd=Path("/"), env=_environment(), stdin=request, pass_fds=descriptors
        )
        argv = ["choom", "-n", "1000", "--", *_apart(), *_python(), program]
        return process.run(argv, timeout=self.seconds, start=start, log=printed)

    def _behind_walls(
        self,
        sandbox: Sandbox,
        program: str,
        request: bytes,
        descriptors: tuple[int, ...],
        printed: Path,
    ) -> process.CompletedCommand:
        alone = isinstance(sandbox.control, cgroup.Parents)
        limits = replace(
            sandbox.limits,
            memory=self.memory_bytes + (_KERNEL_BYTES if alone else _ADDRESS_BYTES),
            tmp=_TMP_BYTES,
            log=READER_OUTPUT_BYTES,
        )
        command = SandboxedCommand(
            argv=[*_python(), program],
            view=View(trust=self.trust, read_only=(*_code(), *self.visible), empty=self.hidden),
            env=_environment(),
            log=printed,
            stdin=request,
            descriptors=descriptors,
        )
        try:
            return replace(sandbox, limits=limits).run(command, timeout=self.seconds)
        except OverLimit as error:
            # the settings that it names are those of builds
            what = str(error).partition(" (SWINGBOT")[0]
            raise ReaderStopped(f"its reader {what}") from None


def _checked(done: process.CompletedCommand, text: bytes, printed: Path) -> dict[str, Any]:
    if done.timed_out:
        raise ReaderStopped("reading it took too long")
    if done.rc < 0 or done.rc > 128:
        number = -done.rc if done.rc < 0 else done.rc - 128
        raise ReaderStopped(f"reading it was ended by signal {number}")
    try:
        answer = (
            json.loads(text) if len(text) <= READER_ANSWER_BYTES else {"stopped": "it is too long"}
        )
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise InfraError(
            f"The reader of builds and boots failed with status {done.rc}: {_end_of(printed)!r}."
        )
    if "stopped" in answer:
        raise ReaderStopped(str(answer["stopped"])[:500])
    if "refused" in answer:
        raise CannotRead(str(answer["refused"])[:500])
    return answer


def _end_of(printed: Path) -> str:
    if not printed.exists():
        return ""
    with printed.open("rb") as file:
        return file.read(READER_OUTPUT_BYTES)[-300:].decode(errors="replace").strip()


def _python() -> list[str]:
    # without `site`, which takes a third of the time that the child needs to start
    return [os.path.realpath(sys.executable), "-B", "-P", "-S", "-c"]


def _environment() -> dict[str, str]:
    return {**_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, _import_paths()))}


@cache
def _import_paths() -> tuple[Path, ...]:
    ours = [Path(package.__path__[0]).resolve().parent for package in _PACKAGES]
    theirs = [Path(path) for path in sys.path if path and Path(path).is_dir()]
    return tuple(dict.fromkeys((*ours, *theirs)))


@cache
def _code() -> tuple[Path, ...]:
    """Return what the child needs to see to start, besides the system's programs."""
    packages = [Path(package.__path__[0]).resolve() for package in _PACKAGES]
    libraries = [
        path for path in _import_paths() if path.name in ("site-packages", "dist-packages")
    ]
    wanted = [*packages, resources.folder("jobs") / "schema", *libraries, Path(sys.base_prefix)]
    return tuple(
        path
        for path in dict.fromkeys(wanted)
        if not path.is_relative_to("/usr")
        and not any(path != other and path.is_relative_to(other) for other in wanted)
    )


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
