"""Leases of the host and of testboxes: file locks, which the kernel releases with their holder.

Kernel builds share the host. A measured boot on a testbox that uses the host's clock needs the host
exclusively; boots on repeatable testboxes need no host lease. A testbox runs one boot at a time,
whoever starts it. Each lease yields its file descriptor. Pass it to the process that does the work:
then the lease of a killed worker is released only when that process has ended too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from swingbot_jobs.testbox.definition import Testbox
from swingbot_worker import InfraError

# Longer than any single build or boot; after that something is stuck and needs a person.
PATIENCE_SECONDS = 4 * 3600.0
_POLL_SECONDS = 0.05

Tell = Callable[[str], None]


def _say_nothing(_: str) -> None:
    return None


@contextlib.contextmanager
def shared(
    cache: Path, *, tell: Tell = _say_nothing, patience: float = PATIENCE_SECONDS
) -> Iterator[int]:
    """Share the host with other builds, but not with an exclusive boot."""
    with _host(
        cache, fcntl.LOCK_SH, "a measured boot has this host to itself", tell, patience
    ) as fd:
        yield fd


@contextlib.contextmanager
def exclusive(
    cache: Path, *, tell: Tell = _say_nothing, patience: float = PATIENCE_SECONDS
) -> Iterator[int]:
    """Use the host exclusively: no kernel build and no other exclusive boot at the same time."""
    with _host(
        cache, fcntl.LOCK_EX, "kernel builds or another measured boot use this host", tell, patience
    ) as fd:
        yield fd


@contextlib.contextmanager
def _host(cache: Path, how: int, why: str, tell: Tell, patience: float) -> Iterator[int]:
    # A process holds the gate while it waits for the lease; otherwise overlapping builds would
    # starve a boot.
    with contextlib.ExitStack() as stack:
        with _held([cache / "host.gate"], fcntl.LOCK_EX, lambda _: why, tell, patience):
            [fd] = stack.enter_context(
                _held([cache / "host.lease"], how, lambda _: why, tell, patience)
            )
        yield fd


@contextlib.contextmanager
def for_testboxes(
    cache: Path,
    names: Iterable[str],
    *,
    tell: Tell = _say_nothing,
    patience: float = PATIENCE_SECONDS,
) -> Iterator[list[int]]:
    """Lease all testboxes of `names` exclusively for one boot.

    Takes all of them at once or none, so that no process holds one while it waits for another.
    """
    names = sorted(set(names))

    def why(busy: Path) -> str:
        sentence = f"testbox {busy.stem} is busy with another boot"
        return (
            f"{' and '.join(names)} are needed together, and {sentence}" if names[1:] else sentence
        )

    paths = [cache / "testboxes" / f"{name}.lease" for name in names]
    with _held(paths, fcntl.LOCK_EX, why, tell, patience) as fds:
        yield fds


@contextlib.contextmanager
def for_boot(testbox: Testbox, cache: Path, *, tell: Tell, patience: float) -> Iterator[list[int]]:
    """Lease everything that a boot of `testbox` uses exclusively.

    That is the testbox, or both testboxes of a cluster, and the host if the host is measured.
    """
    with contextlib.ExitStack() as stack:
        names = testbox.nodes or (testbox.name,)
        fds = stack.enter_context(for_testboxes(cache, names, tell=tell, patience=patience))
        if testbox.virtual and not testbox.repeatable:
            fds.append(stack.enter_context(exclusive(cache, tell=tell, patience=patience)))
        yield fds


@contextlib.contextmanager
def cache_entry(path: Path, *, patience: float = 600.0) -> Iterator[int]:
    """Hold the lock for creating the cache entry `path`."""
    lock, why = path.with_name(path.name + ".lock"), f"another process is creating {path}"
    with _held([lock], fcntl.LOCK_EX, lambda _: why, _say_nothing, patience) as [fd]:
        yield fd


@contextlib.contextmanager
def _held(
    paths: Sequence[Path], how: int, why: Callable[[Path], str], tell: Tell, patience: float
) -> Iterator[list[int]]:
    """Hold the locks of all `paths` at once, and none while waiting.

    Reports once `why` the first busy lock is held. Raises InfraError after `patience` seconds.
    """
    give_up, reported = time.monotonic() + patience, False
    while True:
        with contextlib.ExitStack() as stack:
            fds, busy = _all_or_busy(stack, paths, how)
            if busy is None:
                yield fds
                return
        if not reported:
            tell(f"Waiting: {why(busy)}.")
            reported = True
        if time.monotonic() > give_up:
            raise InfraError(
                f"Gave up after {patience:.0f} s: {why(busy)}; find the process that holds {busy} "
                f"(fuser {busy})."
            )
        time.sleep(_POLL_SECONDS)


def _all_or_busy(
    stack: contextlib.ExitStack, paths: Sequence[Path], how: int
) -> tuple[list[int], Path | None]:
    """Lock all paths.

    Returns the descriptors and the first path that is busy, or None; `stack` releases them.
    """
    fds: list[int] = []
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        stack.callback(os.close, fd)
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return fds, path
        fds.append(fd)
    return fds, None
