"""`swingbot git`: git's own daemon, for the mirror alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Final, NoReturn

from swingbot.app import process
from swingbot.app.settings import Settings, SettingsError

CONNECTIONS: Final = 16
SILENCE_SECONDS: Final = 600  # packing a kernel's tree for the first time takes minutes
# Build workers ask for one commit by its id; a mirror that belongs to another user of this host is meant.
_CONFIG: Final = {"uploadpack.allowAnySHA1InWant": "true", "safe.directory": "*"}


def argv(settings: Settings) -> list[str]:
    """The command that serves the mirror as `git://<host>:<port>/mirror.git`, and nothing else."""
    mirror = settings.mirror
    return [
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
            f"--max-connections={CONNECTIONS}",
            f"--timeout={SILENCE_SECONDS}",
            "--init-timeout=30",
        ),
        *(
            f"--listen={settings.git.host}",
            f"--port={settings.git.port}",
            f"--base-path={mirror.parent}",
            str(mirror),
        ),
    ]


def environment(inherited: dict[str, str]) -> dict[str, str]:
    """What git needs to know, told without anybody's configuration files."""
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
    """Become the daemon. Raises SettingsError or OSError."""
    if not settings.git.host:
        raise SettingsError(
            "git.host: name the one address that the mirror is served on; 0.0.0.0 is all of them"
        )
    # a new lab: the mirror comes with its first tree
    settings.state.mkdir(parents=True, exist_ok=True)
    announce(
        f"serving {settings.mirror} at git://{settings.git.host}:{settings.git.port}/{settings.mirror.name}"
    )
    process.become(argv(settings), env=environment(dict(os.environ)), cwd=settings.state)
