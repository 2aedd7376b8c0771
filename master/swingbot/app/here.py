"""The service of `swingbot here`: it measures commits of a checkout and ends with the command."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from swingbot.app import process, tcp_ports
from swingbot_jobs.borrowed_repository import git_directories

BRANCH: Final = "here"
TESTBOX: Final = "vm-icount"
_PORTS: Final = 4
_SHARED: Final = ("SWINGBOT_PATHS_CACHE", "SWINGBOT_BENCHMARKS_DIR")
_COMPILE_SECONDS: Final = 300.0  # of our own programs, on a busy machine
_START_SECONDS: Final = 300.0
_STOP_SECONDS: Final = 90.0
_UP: Final = b"swingbot is up"
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)  # end the command like Ctrl-C
_SIGNALS: Final = (signal.SIGINT, *_ENDING)


class HereError(OSError):
    """The service did not start; the message has its output."""


def missing_programs(files: Sequence[Path], environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each program that jobs need and this machine lacks: what to install.

    Raises HereError if the worker cannot tell.
    """
    argv = [sys.executable, "-m", "swingbot_worker.cli", "program", "list", "--json", *files]
    try:
        _, said, error = process.answer(
            [str(word) for word in argv], timeout=_COMPILE_SECONDS, env=environ
        )
        jobs = json.loads(said)["jobs"]
    except process.TimedOut as late:
        raise HereError(str(late)) from None
    except ValueError:
        raise HereError(error.strip() or "swingbot-worker program list says nothing") from None
    needs = [need for job in jobs for need in job["programs"]]
    return list(dict.fromkeys(one["detail"] for one in needs if one["state"] == "missing"))


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the service; it shares only its cache, and the directory of
    benchmarks, with others.

    Raises OSError if there are no free ports.
    """
    home = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    own = {name: value for name, value in environ.items() if not name.startswith("SWINGBOT_")}
    own |= {name: environ[name] for name in _SHARED if environ.get(name)}
    return own | {
        "SWINGBOT_CONFIG": os.devnull,
        "SWINGBOT_PATHS_STATE": f"{home}/swingbot-here",
        "SWINGBOT_WEB_PORT": str(tcp_ports.free_ports(8110, _PORTS)),
        "SWINGBOT_WATCH_POLL_SECONDS": "86400",
    }


def lend(checkout: Path, tip: str, place: Path) -> Path:
    """Make the bare repository `place`, whose only branch is at the commit `tip` of a checkout, and
    return it. It has the objects of the checkout, which is not changed. Raises NotARepository.
    """
    common = git_directories(checkout).common
    for folder in ("objects/info", "refs/heads"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    shallow = place / "shallow"
    shallow.unlink(missing_ok=True)
    if (common / "shallow").is_file():
        shallow.symlink_to(common / "shallow")
    (place / "objects" / "info" / "alternates").write_text(f"{common / 'objects'}\n")
    (place / "config").write_text("[core]\n\trepositoryFormatVersion = 0\n\tbare = true\n")
    (place / "HEAD").write_text(f"ref: refs/heads/{BRANCH}\n")
    (place / "refs" / "heads" / BRANCH).write_text(f"{tip}\n")
    return place


@contextmanager
def running(state: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Run the service with the environment `environ` in a child; stop it when the block ends, and
    what it runs.

    Enters the block when the service is up. Raises HereError.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = state / "here.log"
    log.write_bytes(b"")
    argv = [sys.executable, "-m", "swingbot.app.cli", "up"]
    # A terminal that closes ends it too, unless nohup lets it go on.
    ending = [one for one in _ENDING if signal.getsignal(one) != signal.SIG_IGN]
    before = {one: signal.signal(one, _end) for one in ending}
    child = process.start(argv, env=environ, cwd=state, log=log)
    try:
        end = time.monotonic() + _START_SECONDS
        while _UP not in (said := log.read_bytes()):
            if child.poll() is not None or time.monotonic() > end:
                raise HereError(f"the service did not start:\n{said.decode(errors='replace')}")
            time.sleep(0.1)
        yield
    finally:
        before = {one: signal.signal(one, signal.SIG_IGN) for one in _SIGNALS} | before
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(_STOP_SECONDS)
        except process.TimedOut:
            process.kill_tree(child.pid)
        process.kill_executors(state)
        for one, handler in before.items():
            signal.signal(one, handler)


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)
