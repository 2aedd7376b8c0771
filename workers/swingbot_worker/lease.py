"""Who may use the host or a testbox now: file locks, which the kernel frees when their last holder dies.

Kernel builds share the host; a measured boot on a testbox whose clock is the host's needs it alone.
Boots on testboxes that repeat exactly on a busy host need no host lease. A testbox runs one boot at a
time, whoever starts it. Each lease yields its file descriptor: hand it to the process that does the
work, and the lease of a killed worker is free exactly when that process has ended too.
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

# Longer than any one build or boot; after it something is wedged and a person should look.
PATIENCE_SECONDS = 4 * 3600.0
_POLL_SECONDS = 0.05

Tell = Callable[[str], None]


def _say_nothing(_: str) -> None:
    return None


@contextlib.contextmanager
def shared(
    cache: Path, *, tell: Tell = _say_nothing, patience: float = PATIENCE_SECONDS
) -> Iterator[int]:
    """Use the host together with other builds, never beside a boot that needs it alone."""
    with _host(
        cache, fcntl.LOCK_SH, "a measured boot has this host to itself", tell, patience
    ) as fd:
        yield fd


@contextlib.contextmanager
def exclusive(
    cache: Path, *, tell: Tell = _say_nothing, patience: float = PATIENCE_SECONDS
) -> Iterator[int]:
    """Have the host alone: no kernel build and no other such boot beside."""
    with _host(
        cache, fcntl.LOCK_EX, "kernel builds or another measured boot use this host", tell, patience
    ) as fd:
        yield fd


@contextlib.contextmanager
def _host(cache: Path, how: int, why: str, tell: Tell, patience: float) -> Iterator[int]:
    # Whoever waits for the lease holds the gate: without it, builds that overlap would keep a boot out for ever.
    with contextlib.ExitStack() as stack:
        with _held([cache / "host.gate"], fcntl.LOCK_EX, lambda _: why, tell, patience):
            [fd] = stack.enter_context(
                _held([cache / "host.lease"], how, lambda _: why, tell, patience)
            )
        yield fd


@contextlib.contextmanager
def boxes(
    cache: Path,
    names: Iterable[str],
    *,
    tell: Tell = _say_nothing,
    patience: float = PATIENCE_SECONDS,
) -> Iterator[list[int]]:
    """Have the testboxes of `names` alone, for one boot of all of them: all at once or none, so that nobody holds one while he waits for another."""
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
def for_boot(box: Testbox, cache: Path, *, tell: Tell, patience: float) -> Iterator[list[int]]:
    """Have all that a boot of `box` needs alone: the testbox, or both of a cluster, and then the host if it is what is measured."""
    with contextlib.ExitStack() as stack:
        names = box.nodes or (box.name,)
        fds = stack.enter_context(boxes(cache, names, tell=tell, patience=patience))
        if box.virtual and not box.repeatable:
            fds.append(stack.enter_context(exclusive(cache, tell=tell, patience=patience)))
        yield fds


@contextlib.contextmanager
def cache_entry(path: Path, *, patience: float = 600.0) -> Iterator[int]:
    """Be the only one who makes the cache entry `path`."""
    lock, why = path.with_name(path.name + ".lock"), f"another process is making {path}"
    with _held([lock], fcntl.LOCK_EX, lambda _: why, _say_nothing, patience) as [fd]:
        yield fd


@contextlib.contextmanager
def _held(
    paths: Sequence[Path], how: int, why: Callable[[Path], str], tell: Tell, patience: float
) -> Iterator[list[int]]:
    """Hold the locks of all `paths` at once. Who waits holds none; he says once `why` the first busy one is, and gives up with InfraError."""
    give_up, told = time.monotonic() + patience, False
    while True:
        with contextlib.ExitStack() as stack:
            fds, busy = _all_or_busy(stack, paths, how)
            if busy is None:
                yield fds
                return
        if not told:
            tell(f"Waiting: {why(busy)}.")
            told = True
        if time.monotonic() > give_up:
            raise InfraError(
                f"Gave up after {patience:.0f} s: {why(busy)}; see who holds {busy} (fuser {busy})."
            )
        time.sleep(_POLL_SECONDS)


def _all_or_busy(
    stack: contextlib.ExitStack, paths: Sequence[Path], how: int
) -> tuple[list[int], Path | None]:
    """The locks of all paths, or some of them and the first path that somebody else holds; `stack` lets go of them."""
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
