"""Build one program from its source, in the sandbox of kernel builds or else unprivileged."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swingbot_jobs.language.program import load_programs
from swingbot_jobs.language.program_files import SourceRecipe
from swingbot_jobs.printable import printable
from swingbot_worker import InfraError, digest, lease, limits, process, walls
from swingbot_worker.kbuild.recipe import ENVIRONMENT
from swingbot_worker.program import source
from swingbot_worker.program.source import BadSource, ProgramSource
from swingbot_worker.rootfs import installed
from swingbot_worker.site import Site
from swingbot_worker.walls import sandbox
from swingbot_worker.walls.argv import USERS, View
from swingbot_worker.walls.guard import Guard
from swingbot_worker.walls.limits import MIB, BuildLimits, limits_of

PATH: Final = ENVIRONMENT["PATH"]
# will-it-scale with debug information is 6 MB in 140 files, netperf 20 MB in 400.
DISK, LOG, FILES = 1024 * MIB, 8 * MIB, 20_000
LAST_LINES: Final = 15
# Path of the source inside the sandbox, fixed so that equal sources give equal binaries.
INSIDE: Final = Path("/build")
_X86_64_ELF: Final = re.compile(rb"\x7fELF\x02\x01.{12}\x3e\x00", re.DOTALL)

Tell = Callable[[str], None]


class ProgramBuildFailed(Exception):
    """The source does not build; `lines` are the last lines of the build's output."""

    def __init__(self, message: str, lines: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.lines = tuple(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledProgram:
    """A program that was built and installed. `walls` describes the confinement of the build."""

    program: str
    version: str
    directory: Path
    binaries: tuple[str, ...]
    walls: str


def build(program: str, given: Path, site: Site, tell: Tell) -> InstalledProgram:
    """Build `program` from the archive or directory `given` and install it for boots of this host.

    The previous build stays installed until the new one is complete. Raises ProgramBuildFailed if
    the source is refused or does not build, InfraError if a tool is missing on this host.
    """
    recipe = _recipe(program, site)
    _need()
    compiler = _compiler()
    with _work() as work:
        tell(f"Reading {given}.")
        confinement = _confinement()
        with confinement.room(work / "source") as room:
            taken = _taken(program, recipe, given, room)
            if taken.left_out:
                tell(f"Skipped {taken.left_out} binaries and objects in it.")
            tell(f"Building {program} {confinement.words}.")
            with lease.shared(site.cache, tell=tell):
                _run(program, recipe, taken.root, work / "build.log", site, confinement)
            binaries = _binaries(program, recipe, taken.root)
    commit = f"{taken.commit[:12]} " if taken.commit else ""
    version = f"{program} {commit}(source {taken.sha256[:12]}), {compiler}"
    note = {
        "program": program,
        "version": version,
        "source": {
            "name": given.name,
            "sha256": taken.sha256,
            "commit": taken.commit,
            "archive_sha256": digest.sha256(given) if given.is_file() else None,
        },
        "compiler": compiler,
        "walls": confinement.words,
        "built_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "binaries": {name: installed.described(content) for name, content in binaries.items()},
    }
    return InstalledProgram(
        program=program,
        version=version,
        directory=installed.install(site.cache, program, binaries, note),
        binaries=tuple(sorted(binaries)),
        walls=confinement.words,
    )


def _recipe(name: str, site: Site) -> SourceRecipe:
    known = load_programs(site.jobs / "programs")
    recipe = known[name].build if name in known else None
    if recipe is None:
        buildable = [program.name for program in known.values() if program.build]
        raise InfraError(
            f"swingbot has no build recipe for {name!r}; it has recipes for"
            f" {' and '.join(buildable)}."
        )
    return recipe


def _need() -> None:
    lacking = [name for name in ("gcc", "make") if shutil.which(name, path=PATH) is None]
    if lacking:
        raise InfraError(
            f"This host cannot build programs: install {' '.join(lacking)}"
            f" (apt-get install {' '.join(lacking)})."
        )


def _compiler() -> str:
    """Return the first line of `gcc --version`."""
    answer = process.output(["gcc", "--version"], timeout=60, env=ENVIRONMENT)
    return printable(answer.text.partition("\n")[0].strip())[:200]


@contextmanager
def _work() -> Iterator[Path]:
    """Yield a directory that the build user can enter; it is deleted afterwards."""
    work = Path(tempfile.mkdtemp(prefix="swingbot-program-"))
    try:
        work.chmod(0o711)
        yield work
    finally:
        sandbox.forget(work)


def _taken(program: str, recipe: SourceRecipe, given: Path, target: Path) -> ProgramSource:
    try:
        taken = source.take_in(given, target)
    except BadSource as error:
        raise ProgramBuildFailed(f"The source of {program} is refused: {error}.") from error
    lacking = [mark for mark in recipe.marks if not (taken.root / mark).is_file()]
    if lacking:
        raise ProgramBuildFailed(
            f"{given} is not the source of {program}: it has no {lacking[0]};"
            f" upstream is {recipe.upstream}."
        )
    return taken


# --- the build -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Confinement:
    """The confinement of a build: behind all walls, or (None) unprivileged and with limits."""

    sandbox: walls.Sandbox | None
    limits: BuildLimits
    words: str

    @contextmanager
    def room(self, directory: Path) -> Iterator[Path]:
        """Yield an empty directory for the source and its objects, limited in size if possible."""
        if self.sandbox is None:
            directory.mkdir()
            yield directory
            return
        with self.sandbox.room(directory) as room:
            yield room


def _confinement() -> _Confinement:
    probe = walls.probe()
    limits = limits_of()
    limits = replace(limits, disk=min(limits.disk, DISK), log=LOG, files=FILES)
    if probe.sandbox is not None:
        return _Confinement(replace(probe.sandbox, limits=limits), limits, "behind walls")
    user = f"as user {USERS['untrusted']}" if os.geteuid() == 0 else "as the current user"
    why = walls.missing(probe.walls[:1])
    return _Confinement(None, limits, f"without walls, {user}, with limits ({why})")


def _run(
    program: str, recipe: SourceRecipe, root: Path, log: Path, site: Site, confinement: _Confinement
) -> None:
    """Run the recipe's commands and reduce `root` to regular files. Raises ProgramBuildFailed."""
    deadline = time.monotonic() + limits.PROGRAM_SECONDS
    sandbox.owned(root, "root" if os.geteuid() == 0 else "user", "untrusted")
    for argv in recipe.command_lines(site.make_jobs):
        timeout = max(deadline - time.monotonic(), 0.001)
        run = _behind_walls if confinement.sandbox else _without_walls
        try:
            done = run(argv, root, log, timeout, confinement)
            walls.clean(root, confinement.limits)
        except walls.OverLimit as error:
            raise ProgramBuildFailed(f"The build of {program} {error}; it was stopped.") from None
        if done.timed_out:
            raise ProgramBuildFailed(
                f"The build of {program} took longer than {limits.PROGRAM_SECONDS:.0f} s"
                " and was stopped.",
                last_lines(log),
            )
        if done.rc != 0:
            words = f"`{' '.join(argv)}` exited with status {done.rc}.{_hint(recipe)}"
            raise ProgramBuildFailed(words, last_lines(log))


def _hint(recipe: SourceRecipe) -> str:
    """Return advice about packages that the failed build may have needed."""
    lacking = [
        (header, package)
        for header, package in recipe.headers.items()
        if not Path("/usr/include", header).is_file()
    ]
    return "".join(
        f" {header} is not installed; install it (apt-get install {package}) and retry."
        for header, package in lacking
    )


def _behind_walls(
    argv: list[str], root: Path, log: Path, timeout: float, confinement: _Confinement
) -> process.CompletedCommand:
    assert confinement.sandbox is not None
    inside = INSIDE / "source"
    view = View(trust="untrusted", writable=((root, inside),), directory=inside)
    command = sandbox.SandboxedCommand(
        argv=argv, view=view, env=_environment(), log=log, measured=root
    )
    return confinement.sandbox.run(command, timeout=timeout)


def _without_walls(
    argv: list[str], root: Path, log: Path, timeout: float, confinement: _Confinement
) -> process.CompletedCommand:
    """Run a command unprivileged, with limits of memory, disk and log. As root, switch the user."""
    limits, user = confinement.limits, USERS["untrusted"]
    limited = {"as": limits.memory, "fsize": limits.disk, "nofile": 4096, "core": 0}
    drop = [f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.geteuid() == 0 else []
    words = [
        "prlimit",
        *(f"--{name}={value}:{value}" for name, value in limited.items()),
        "setpriv",
        *drop,
        "--no-new-privs",
        "--inh-caps=-all",
        "--",
        *argv,
    ]
    silent, end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        guard = Guard(limits, root, log, silent)
        start = process.Start(cwd=root, env=_environment())
        done = process.run(
            words, timeout=timeout, log=log, start=start, watch=guard, watch_seconds=0.5
        )
        guard.look_at_objects(root)
        return done
    finally:
        os.close(silent)
        os.close(end)


def _environment() -> dict[str, str]:
    return {**ENVIRONMENT, "HOME": "/tmp", "TMPDIR": "/tmp"}


def last_lines(log: Path) -> list[str]:
    """Return the last lines of a build log, truncated and without control characters."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 65_536))
        text = file.read().decode(errors="replace")
    return [printable(line)[:300] for line in text.splitlines() if line.strip()][-LAST_LINES:]


# --- the result ------------------------------------------------------------------------------


def _binaries(program: str, recipe: SourceRecipe, root: Path) -> dict[str, bytes]:
    """Return the program's binaries by name.

    Raises ProgramBuildFailed if there are none, or if one is not an executable.
    """
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    binaries = {Path(path).name: _binary(root / path) for path in recipe.binaries(paths)}
    if not binaries:
        raise ProgramBuildFailed(
            f"The build of {program} succeeded but produced none of its binaries."
        )
    return binaries


def _binary(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limits.BINARY_BYTES:
            raise ProgramBuildFailed(
                f"The build left a {path.name} that is not a regular file or is too large."
            )
        content = file.read(limits.BINARY_BYTES + 1)
    if not _X86_64_ELF.match(content):
        raise ProgramBuildFailed(f"The build left a {path.name} that is not an x86-64 executable.")
    return content
