"""A commit brings its own get_maintainer.pl and MAINTAINERS, and the script looks around."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from swingbot.adapters.maintainers import maintainers_of
from swingbot.core.mail.recipients import NoMaintainers
from swingbot_worker.walls import cgroup
from tests.attack.target import Result, Target

NAME = "chosen-maintainers"
WANTED = "the base's maintainers alone; no file of the host, no crowd, no gigabyte"
_HONEST = 'print "maintainer\\@example.org (maintainer:X)\\n";'
_PICKS = 'print "victim$_\\@example.org (maintainer:X)\\n" for (1..15);'
_FORKS = "for (1..600) { if (!fork()) { sleep 20; exit } } sleep 20; "
# Memory of each process: a string that perl knows before it forks would be shared by all.
_ALLOCATES = (
    "for (1..6) { if (!fork()) { my $x = chr(65 + $_) x 150000000; sleep 20; exit } } sleep 20; "
)
_LIMIT_MB = 512
_PEAK = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}


def run(target: Target) -> Result:
    """Let a culprit pick 15 addressees; let a base's script look, fork and allocate."""
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        place = Path(directory)
        place.chmod(0o755)
        repository = place / "linux"
        looks = "".join(
            f'print "sees-{name}\\@example.org (maintainer:X)\\n" if -r "{path}"; '
            for name, path in (
                ("mirror", repository / ".git" / "HEAD"),
                ("password", "/etc/passwd"),
                ("state", target.state or place),
            )
        )
        picked = _asked(repository, _HONEST, _PICKS)
        seen = _asked(repository, looks + _HONEST, _PICKS)
        crowd = _asked(repository, _FORKS + _HONEST, _PICKS)
        with _peak() as peak:
            memory = _asked(repository, _ALLOCATES + _HONEST, _PICKS)
    alone = "maintainer@example.org"
    held = picked == seen == alone and "limit" in crowd and "limit" in memory
    # Counted by the kernel, each page once, in steps of a few hundred KB. 0: no cgroup of its own
    small = peak[0] >> 20 <= _LIMIT_MB
    return Result(
        held and small,
        f"picks: {picked}; looks: {seen}; forks: {crowd};"
        f" allocates: {memory}, with {peak[0] >> 20} MB at most",
    )


@contextmanager
def _peak() -> Iterator[list[int]]:
    """Record the peak of the cgroups that this process's children create, in bytes."""
    peak, stop = [0], threading.Event()

    def watch() -> None:
        with suppress(cgroup.NoGroup):
            control = cgroup.find()
            while not stop.wait(0.02):
                for child in psutil.Process().children(recursive=True):
                    for group in control.memory.glob(f"{cgroup.PREFIX}{child.pid}-*"):
                        with suppress(OSError, ValueError):
                            peak[0] = max(
                                peak[0], int((group / _PEAK[control.version]).read_text())
                            )

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def _asked(repository: Path, base: str, culprit: str) -> str:
    """Return the addressees when the base has the script `base` and its child `culprit`."""
    (repository / "scripts").mkdir(parents=True, exist_ok=True)
    _git(repository, ["init", "-q"])
    for script in (base, culprit):
        (repository / "scripts" / "get_maintainer.pl").write_text(script)
        (repository / "MAINTAINERS").write_text(f"for {script}")
        _git(repository, ["add", "."])
        _git(repository, ["commit", "-q", "--allow-empty", "-m", "change"])
    try:
        found = maintainers_of(repository / ".git", "HEAD", "HEAD~1")
    except NoMaintainers as error:
        return str(error)
    return ", ".join(entry.address for entry in found)


def _git(repository: Path, arguments: Sequence[str]) -> None:
    names = {"NAME": "E", "EMAIL": "e@example.org"}
    identity = {
        f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in names.items()
    }
    subprocess.run(
        ["git", *arguments], cwd=repository, env={**os.environ, **identity}, check=True, timeout=60
    )
