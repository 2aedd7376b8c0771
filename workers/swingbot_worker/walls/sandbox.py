"""Commands behind walls, and what they leave."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs.contract.trust import Trust
from swingbot_worker import InfraError, process
from swingbot_worker.walls import argv as command_line
from swingbot_worker.walls import seccomp
from swingbot_worker.walls.argv import USERS, Descriptors, View, Way
from swingbot_worker.walls.guard import WATCH_SECONDS, Guard, OverLimit, room
from swingbot_worker.walls.limits import MIB, Limits

# Programs of this host that find and delete; nothing of a build's own environment reaches them.
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_CLEAN_SECONDS = 300.0
# A file that is longer is no part of a kernel, whatever it says: nothing here reads it.
LONGEST_FILE = 2_048 * MIB
# Of directories; those of a kernel are 12. Far more would be in the way of whoever walks through them.
DEEPEST = 64
# Says that all walls stand, closes what only they need, and is the command from then on. bash, because dash knows no descriptor above 9.
_READY = 'echo ready >&"$0"; eval "exec $0>&-"; exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedCommand:
    """One command to run behind walls. `measured` is the directory whose room is limited; `keep` a descriptor held meanwhile."""

    argv: Sequence[str]
    view: View
    env: Mapping[str, str]
    log: Path | None
    measured: Path | None = None
    keep: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Runs commands behind all walls of this host, which it is said to have (`probe`)."""

    way: Way
    limits: Limits

    def run(
        self,
        command: SandboxedCommand,
        *,
        timeout: float,
        progress: Callable[[float], None] | None = None,
    ) -> process.Completed:
        """Run `command` and wait until nothing of it is left. Raises OverLimit, and InfraError if a wall cannot be built."""
        log, keep = command.log, command.keep
        with _pipe() as (info, info_in), _pipe() as (ready, ready_in), _filter() as rules:
            descriptors = Descriptors(seccomp=rules, info=info_in, keep=keep)
            said = ["bash", "-c", _READY, str(ready_in), *command.argv]
            words = command_line.behind(
                self.way, command.view, self.limits, timeout, descriptors, said
            )
            guard = Guard(self.limits, command.measured, log, info, progress)
            passed = [rules, info_in, ready_in, *([] if keep is None else [keep])]
            begin = log.stat().st_size if log is not None and log.exists() else 0
            try:
                done = process.run(
                    words,
                    timeout=timeout,
                    log=log,
                    start=process.Start(cwd=Path("/"), env=command.env, pass_fds=passed),
                    watch=guard,
                    watch_seconds=WATCH_SECONDS,
                )
            finally:
                gone = guard.wait_until_empty()
                _shorten(log, self.limits.log + begin)
            if not gone:
                raise InfraError(
                    "Processes of the build are left that do not end; see which ones of users 65531 and 65532 there are, and end them."
                )
            if not done.timed_out and _told(ready) != b"ready\n":
                raise InfraError(
                    f"The walls around the build could not be built ({_last_line(log, begin)}); `swingbot-worker walls` says more."
                )
        if command.measured is not None:
            guard.look_at_objects(command.measured)
        return done


def clean(objects: Path, limits: Limits) -> None:
    """Leave nothing in `objects` but directories and plain files of a sensible length: no link, no pipe, no device. Raises OverLimit.

    Call it when nothing of the build runs any more; then what is in there can be opened by name. kbuild makes its links anew where it needs them.
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
        f"+{LONGEST_FILE // MIB}M",
    ]
    done = process.output(
        ["find", objects, "-xdev", "(", *odd, ")", "-delete"],
        timeout=_CLEAN_SECONDS,
        env=_ENVIRONMENT,
    )
    if done.timed_out:
        raise OverLimit("made more files than can be looked at")
    if done.rc != 0:
        raise InfraError(f"{objects} could not be looked through ({done.text.strip()[-200:]}).")
    deep = process.output(
        ["find", objects, "-xdev", "-mindepth", str(DEEPEST), "-print", "-quit"],
        timeout=_CLEAN_SECONDS,
        env=_ENVIRONMENT,
    )
    if deep.text or deep.timed_out:
        raise OverLimit(f"made directories more than {DEEPEST} deep")
    lengths, _ = room(objects, apparent=True)
    if lengths is None or lengths > 2 * limits.disk:
        raise OverLimit(
            f"made files of {'' if lengths is None else lengths // MIB} MB in length; it may make {2 * limits.disk // MIB} (SWINGBOT_BUILD_DISK_MB)"
        )


def owned(directory: Path, way: Way, trust: Trust) -> None:
    """Give `directory` and all in it to the user that builds, unless they are his; links are not followed."""
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
            f"{directory} could not be given to the user that builds ({done.text.strip()[-200:]})."
        )


def disowned(directory: Path) -> None:
    """Note that somebody else than the user that builds is going to write into `directory`, so that `owned` sees to all in it the next time."""
    if os.geteuid() == 0 and directory.exists() and directory.stat().st_uid in USERS.values():
        os.chown(directory, 0, 0)


def forget(directory: Path) -> None:
    """Delete `directory`, however deep and strange what is in it. Raises InfraError if something of it stays."""
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
    """Make `target` a copy of the directory `source` with its time stamps, sharing blocks where the file system can. Raises InfraError."""
    done = process.output(
        ["cp", "--archive", "--no-target-directory", "--reflink=auto", "--", source, target],
        timeout=_CLEAN_SECONDS,
        env=_ENVIRONMENT,
    )
    if done.rc != 0:
        raise InfraError(f"{source} could not be copied ({done.text.strip()[-200:]}).")


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose reading end never blocks."""
    out, into = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(out, False)
    try:
        yield out, into
    finally:
        os.close(out)
        os.close(into)


def _told(pipe: int) -> bytes:
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


def _shorten(log: Path | None, most: int) -> None:
    if log is not None and log.exists() and log.stat().st_size > most:
        os.truncate(log, most)


def _last_line(log: Path | None, begin: int) -> str:
    if log is None:
        return "it said nothing"
    with log.open("rb") as file:
        file.seek(begin)
        return (
            file.read(65_536).decode(errors="replace").strip().rpartition("\n")[2][:300]
            or "it said nothing"
        )
