"""`git patch-id --verbatim` of diffs that are in no repository."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from swingbot.adapters import git_limits, process

_SECONDS: Final = 60.0
_CONFIG: Final = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def patch_ids(diffs: Sequence[bytes]) -> list[str]:
    """Return the id of each diff, "" of one that git sees none in; no ids if git does not run.

    It is that of a commit with the same diff on any base: line numbers do not count. White space
    does: without line feeds a diff whose code stands in a comment would have the same id.
    """
    given = b"".join(b"commit %040x\n%b\n" % pair for pair in enumerate(diffs))
    environment = {"PATH": os.environ.get("PATH", os.defpath), **_CONFIG}
    try:
        done = process.run(
            ["git", "patch-id", "--verbatim"],
            timeout=_SECONDS,
            cwd=Path("/"),
            env=environment,
            stdin=given,
            within=git_limits.GIT,
        )
    except OSError:
        return []
    found = {int(number, 16): id_ for id_, number in map(str.split, done.out.splitlines())}
    return [found.get(at, "") for at in range(len(diffs))] if done.rc == 0 else []
