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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

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
        with _held(cache / "host.gate", fcntl.LOCK_EX, why, tell, patience):
            fd = stack.enter_context(_held(cache / "host.lease", how, why, tell, patience))
        yield fd


@contextlib.contextmanager
def one_boot(
    cache: Path, name: str, *, tell: Tell = _say_nothing, patience: float = PATIENCE_SECONDS
) -> Iterator[int]:
    """Have testbox `name` alone, for one boot."""
    with _held(
        _box(cache, name),
        fcntl.LOCK_EX,
        f"testbox {name} is busy with another boot",
        tell,
        patience,
    ) as fd:
        yield fd


@contextlib.contextmanager
def together(
    cache: Path,
    names: Sequence[str],
    *,
    tell: Tell = _say_nothing,
    patience: float = PATIENCE_SECONDS,
) -> Iterator[list[int]]:
    """Have all testboxes of `names` alone, for one boot of all of them: all at once or none, so that nobody holds one while he waits for another."""
    names = sorted(set(names))
    give_up, told = time.monotonic() + patience, False
    while True:
        with contextlib.ExitStack() as stack:
            held, busy = _all_or_busy(stack, cache, names)
            if busy is None:
                yield held
                return
        why = f"{' and '.join(names)} are needed together, and testbox {busy} is busy with another boot"
        if time.monotonic() > give_up:
            raise InfraError(
                f"Gave up after {patience:.0f} s: {why}; see who holds {_box(cache, busy)} (fuser {_box(cache, busy)})."
            )
        if not told:
            tell(f"Waiting: {why}.")
            told = True
        time.sleep(_POLL_SECONDS)


def _all_or_busy(
    stack: contextlib.ExitStack, cache: Path, names: Sequence[str]
) -> tuple[list[int], str | None]:
    """The leases of all, or some of them and the first testbox that is busy."""
    held: list[int] = []
    for name in names:
        try:
            held.append(stack.enter_context(one_boot(cache, name, patience=-1.0)))
        except InfraError:
            return held, name
    return held, None


def _box(cache: Path, name: str) -> Path:
    return cache / "testboxes" / f"{name}.lease"


@contextlib.contextmanager
def cache_entry(path: Path, *, patience: float = 600.0) -> Iterator[int]:
    """Be the only one who makes the cache entry `path`."""
    with _held(
        path.with_name(path.name + ".lock"),
        fcntl.LOCK_EX,
        f"another process is making {path}",
        _say_nothing,
        patience,
    ) as fd:
        yield fd


@contextlib.contextmanager
def _held(path: Path, how: int, why: str, tell: Tell, patience: float) -> Iterator[int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _take(fd, how, path, why, tell, patience)
        yield fd
    finally:
        os.close(fd)


def _take(fd: int, how: int, path: Path, why: str, tell: Tell, patience: float) -> None:
    give_up, told = time.monotonic() + patience, False
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not told:
                tell(f"Waiting: {why}.")
                told = True
            if time.monotonic() > give_up:
                raise InfraError(
                    f"Gave up after {patience:.0f} s: {why}; see who holds {path} (fuser {path})."
                ) from None
            time.sleep(_POLL_SECONDS)
