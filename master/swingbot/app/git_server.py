"""`swingbot git`: serve the mirror with git daemon."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from typing import Final, NoReturn

from swingbot.adapters.git_limits import WHOLE_HISTORY
from swingbot.app import limits, process
from swingbot.app.settings import Settings, SettingsError
from swingbot_jobs.process_limits import processor_limit

# Build workers fetch commits by id; the mirror may be owned by another user. What packs objects for
# a client has a limit of processor time, which the daemon itself must not have.
_CONFIG: Final = {
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.packObjectsHook": f"prlimit {processor_limit(limits.PACKING_SECONDS)}",
    "safe.directory": "*",
}


def argv(settings: Settings) -> list[str]:
    """Command that serves only the mirror, as `git://<host>:<port>/mirror.git`."""
    mirror = settings.mirror
    daemon = [
        *(
            shutil.which("git") or "git",
            "daemon",
            "--reuseaddr",
            "--strict-paths",
            "--export-all",
            "--verbose",
        ),
        *(
            "--disable=receive-pack",
            "--disable=upload-archive",
            f"--max-connections={limits.GIT_CLIENTS}",
            f"--timeout={limits.GIT_IDLE_SECONDS}",
            "--init-timeout=30",
        ),
        *(
            f"--listen={settings.git.host}",
            f"--port={settings.git.port}",
            f"--base-path={mirror.parent}",
            str(mirror),
        ),
    ]
    # also those of the upload-pack and pack-objects that it starts for each client
    return WHOLE_HISTORY.around(daemon, math.inf)


def environment(inherited: dict[str, str]) -> dict[str, str]:
    """Environment that configures git independently of any configuration file."""
    settings = {
        f"GIT_CONFIG_{part}_{number}": text
        for number, pair in enumerate(_CONFIG.items())
        for part, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    plain = {name: value for name, value in inherited.items() if not name.startswith("GIT_")}
    return (
        plain
        | {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_COUNT": str(len(_CONFIG)),
        }
        | settings
    )


def run(settings: Settings, announce: Callable[[str], None]) -> NoReturn:
    """Exec the daemon. Raises SettingsError or OSError."""
    if not settings.git.host:
        raise SettingsError(
            "git.host is not set; set it to the address on which to serve the mirror (0.0.0.0: all)"
        )
    # In a new lab the mirror does not exist before the first tree is added.
    settings.state.mkdir(parents=True, exist_ok=True)
    announce(
        f"serving {settings.mirror} at"
        f" git://{settings.git.host}:{settings.git.port}/{settings.mirror.name}"
    )
    process.become(argv(settings), env=environment(dict(os.environ)), cwd=settings.state)
