"""Run commands behind the walls, and clean up their files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.contract.trust import Trust
from swingbot_worker import InfraError, process
from swingbot_worker.limits import BUILD_DEPTH, KERNEL_FILE_BYTES
from swingbot_worker.walls import argv as command_line
from swingbot_worker.walls import cgroup, disk, seccomp
from swingbot_worker.walls.argv import USERS, Descriptors, View, Way
from swingbot_worker.walls.guard import WATCH_SECONDS, GrowingCache, Guard, OverLimit, room
from swingbot_worker.walls.limits import MIB, BuildLimits
from swingbot_worker.walls.log_pipe import copied_to

# Environment of the host's programs that search and delete, independent of the build's.
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_CLEAN_SECONDS = 300.0
# Reports that all walls work, closes their descriptors and executes the command. It needs bash,
# because dash does not support descriptors above 9.
_READY = 'echo ready >&"$0"; eval "exec $0>&-"; exec "$@"'


class NoWalls(InfraError):
    """A wall could not be set up, so the command was not executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedCommand:
    """One command to run behind the walls.

    `measured` is the directory whose size is limited, together with the growth of `cache`; `keep`
    is a descriptor that stays open meanwhile. `stdin` is its input, and `descriptors` are open in
    it under the same numbers.
    """

    argv: Sequence[str]
    view: View
    env: Mapping[str, str]
    log: Path | None
    measured: Path | None = None
    cache: GrowingCache | None = None
    keep: int | None = None
    stdin: bytes | None = None
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Runs commands behind all walls of this host, which `probe` has tested.

    `control` and `scratch` are None where this host cannot limit memory or disk space of a whole
    build; then each process has limits, and the guard measures. `walls` has the names of those
    that stand.
    """

    way: Way
    limits: BuildLimits
    control: cgroup.Parents | cgroup.Inherited | None = None
    scratch: disk.Scratch | None = None
    walls: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every wall stands, as untrusted code requires."""
        return self.control is not None and self.scratch is not None

    @contextlib.contextmanager
    def room(self, directory: Path) -> Iterator[Path]:
        """Yield a directory for the output of a build, limited in size where this host can.

        It is `directory` unless the operator named another place. It is deleted afterwards.
        """
        if self.scratch is not None:
            with disk.limited(self.scratch, directory, self.limits) as limited:
                yield limited
            return
        directory.mkdir(parents=True)
        try:
            yield directory
        finally:
            forget(directory)

    def run(
        self,
        command: SandboxedCommand,
        *,
        timeout: float,
        progress: Callable[[float], None] | None = None,
    ) -> process.CompletedCommand:
        """Run `command` and wait until all of its processes have exited.

        Raises OverLimit, and InfraError if a wall cannot be set up.
        """
        with self._group() as group:
            return self._run(command, group, timeout, progress)

    def _group(self) -> contextlib.AbstractContextManager[cgroup.ControlGroup | None]:
        if self.control is None:
            return contextlib.nullcontext()
        return cgroup.group(self.control, self.limits)

    def _run(
        self,
        command: SandboxedCommand,
        group: cgroup.ControlGroup | None,
        timeout: float,
        progress: Callable[[float], None] | None,
    ) -> process.CompletedCommand:
        log, keep = command.log, command.keep
        with _pipe() as (info, info_in), _pipe() as (ready, ready_in), _filter() as rules:
            descriptors = Descriptors(seccomp=rules, info=info_in, keep=keep)
            wrapped = ["bash", "-c", _READY, str(ready_in), *command.argv]
            words = command_line.behind(
                self.way,
                command.view,
                self.limits,
                timeout,
                descriptors,
                wrapped,
                grouped=isinstance(self.control, cgroup.Parents),
            )
            if group is not None:
                words = group.entering(words)
            guard = Guard(
                self.limits,
                command.measured,
                log,
                info,
                progress,
                group=group,
                scratch=None if self.scratch is None else self.scratch.directory,
                cache=command.cache,
            )
            kept = command.descriptors if keep is None else (keep, *command.descriptors)
            passed = [rules, info_in, ready_in, *kept]
            begin = log.stat().st_size if log is not None and log.exists() else 0
            with copied_to(log, self.limits.log + 1) as output:
                start = process.Start(
                    cwd=Path("/"),
                    env=command.env,
                    stdin=command.stdin,
                    pass_fds=passed,
                    stdout=output,
                )
                try:
                    done = process.run(
                        words,
                        timeout=timeout,
                        start=start,
                        watch=guard,
                        watch_seconds=WATCH_SECONDS,
                    )
                finally:
                    gone = guard.wait_until_empty()
            if not gone:
                raise InfraError(
                    "Processes of the build do not exit; find the processes of users 65531 and "
                    "65532, and kill them."
                )
            guard.look_at_counts()
            guard.look_at_log()
            if not done.timed_out and _received(ready) != b"ready\n":
                raise NoWalls(
                    f"The walls around the build could not be set up ({_last_line(log, begin)}); "
                    "run `swingbot-worker walls` for details."
                )
        if command.measured is not None:
            guard.look_at_objects(command.measured)
        return done


def clean(objects: Path, limits: BuildLimits) -> None:
    """Delete everything in `objects` except directories and regular files. Raises OverLimit.

    Call it after all processes of the build have exited. Afterwards the files can be opened by
    name, because no link, pipe or device remains. kbuild creates its links again when it needs
    them.
    """
    odd = [
        "(",
        "-not",
        "-type",
        "f",
        "-not",
        "-type",
        "d",
        ")",
        "-o",
        "-size",
        f"+{KERNEL_FILE_BYTES // MIB}M",
    ]
    done = process.output(
        ["find", objects, "-xdev", "(", *odd, ")", "-delete"],
        timeout=_CLEAN_SECONDS,
        env=_ENVIRONMENT,
    )
    if done.timed_out:
        raise OverLimit("created too many files to check")
    if done.rc != 0:
        raise InfraError(f"{objects} could not be searched ({done.text.strip()[-200:]}).")
    deep = process.output(
        ["find", objects, "-xdev", "-mindepth", str(BUILD_DEPTH), "-print", "-quit"],
        timeout=_CLEAN_SECONDS,
        env=_ENVIRONMENT,
    )
    if deep.text or deep.timed_out:
        raise OverLimit(f"created directories more than {BUILD_DEPTH} levels deep")
    lengths, _ = room(objects, apparent=True)
    if lengths is None or lengths > 2 * limits.disk:
        raise OverLimit(
            f"created files of {'unknown' if lengths is None else lengths // MIB} MB in length; "
            f"the limit is {2 * limits.disk // MIB} MB (SWINGBOT_BUILD_DISK_MB)"
        )


def owned(directory: Path, way: Way, trust: Trust) -> None:
    """Change the owner of `directory` and its content to the build user; links are not followed."""
    user = USERS[trust]
    if way == "user" or directory.stat().st_uid == user:
        return
    done = process.output(
        ["chown", "-hR", f"{user}:{user}", "--", directory],
        timeout=_CLEAN_SECONDS,
        env=_ENVIRONMENT,
    )
    if done.rc != 0:
        raise InfraError(
            f"{directory} could not be given to the build user ({done.text.strip()[-200:]})."
        )


def disowned(directory: Path) -> None:
    """Give `directory` itself to root, so that the next `owned` changes the owner of its content.

    Call it before another user than the build user writes to the directory.
    """
    if os.geteuid() == 0 and directory.exists() and directory.stat().st_uid in USERS.values():
        os.chown(directory, 0, 0)


def forget(directory: Path) -> None:
    """Delete `directory` with any content. Raises InfraError if it still exists afterwards."""
    done = process.output(
        ["rm", "-rf", "--one-file-system", "--", directory],
        timeout=_CLEAN_SECONDS,
        env=_ENVIRONMENT,
    )
    if directory.exists():
        raise InfraError(
            f"{directory} could not be deleted ({done.text.strip()[-200:]}); delete it by hand."
        )


def copied(source: Path, target: Path) -> None:
    """Copy the directory `source` to `target`, with time stamps. Raises InfraError.

    The copy shares blocks if the file system supports it.
    """
    done = process.output(
        ["cp", "--archive", "--no-target-directory", "--reflink=auto", "--", source, target],
        timeout=_CLEAN_SECONDS,
        env=_ENVIRONMENT,
    )
    if done.rc != 0:
        raise InfraError(f"{source} could not be copied ({done.text.strip()[-200:]}).")


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """Yield the ends of a pipe whose read end never blocks."""
    out, into = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(out, False)
    try:
        yield out, into
    finally:
        os.close(out)
        os.close(into)


def _received(pipe: int) -> bytes:
    try:
        return os.read(pipe, 64)
    except BlockingIOError:
        return b""


@contextlib.contextmanager
def _filter() -> Iterator[int]:
    descriptor = os.memfd_create("swingbot-seccomp", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, seccomp.program())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _last_line(log: Path | None, begin: int) -> str:
    if log is None:
        return "no output"
    with log.open("rb") as file:
        file.seek(begin)
        return (
            file.read(65_536).decode(errors="replace").strip().rpartition("\n")[2][:300]
            or "no output"
        )
