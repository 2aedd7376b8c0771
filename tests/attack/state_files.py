"""Another user of the host reads the state directory: mirror, artifacts, mails, keys, logs."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.attack.target import Result, Target, skipped

NAME: Final = "state-files"
WANTED: Final = "another user can neither list the state directory nor open a file in it"
OTHER_USER: Final = 65_534
MOST: Final = 1000


def run(target: Target) -> Result:
    """Try it as another user, which takes root; count the files that were opened."""
    if target.state is None:
        return skipped("give --state, the state directory")
    if os.geteuid() != 0:
        return skipped("only root can become another user")
    state = target.state.resolve()
    files = _files(state)
    listed = _as_other_user(lambda: os.listdir(state))
    opened = [path.name for path in files if _as_other_user(partial(_read, path))]
    return Result(
        held=bool(files) and not listed and not opened,
        line=f"listed: {listed}; {len(opened)} of {len(files)} files read {opened[:3]}",
    )


def _files(state: Path) -> list[Path]:
    """Return MOST files, the tables of the embedded database last: they are most of all files."""
    found = [path for path in state.rglob("*") if path.is_file()]
    return sorted(found, key=lambda path: "postgres" in path.relative_to(state).parts)[:MOST]


def _read(file: Path) -> None:
    with file.open("rb") as opened:
        opened.read(1)


def _as_other_user(attempt: Callable[[], object]) -> bool:
    """Whether `attempt` works for another user."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(OTHER_USER)
            os.setuid(OTHER_USER)
            attempt()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
