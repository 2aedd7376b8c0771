"""The address of the running service: `swingbot web` writes it into the state directory, commands read it there.

A command in another terminal knows neither the `--port` that `swingbot up` was given nor the
settings file of the service; the state directory is what they share.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
from pathlib import Path
from typing import Final

from swingbot.app.settings import Settings, SettingsError

_LONGEST: Final = 2000
_ADDRESS: Final = re.compile(r"https?://[^\s/\"'<>]+[^\s\"'<>]*")


def file_of(state: Path) -> Path:
    """Where the address stands: one line, without a slash at its end."""
    return state / "address"


def record(settings: Settings) -> None:
    """Write the address that people see; a reader meets the old one or the new one. Raises OSError."""
    file = file_of(settings.state)
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=".address.", delete=False) as new:
        new.write(f"{settings.web_url}\n")
    os.chmod(new.name, 0o644)
    os.replace(new.name, file)


def with_recorded(settings: Settings) -> Settings:
    """The same settings with the recorded address as `web.public_url`.

    Without a record, or with a port from the command line, they stay as they are. Raises
    SettingsError for a record that is not an address.
    """
    file = file_of(settings.state)
    if settings.sources.get("web.port") == "command line":
        return settings
    try:
        with file.open("rb") as source:
            line = source.read(_LONGEST).decode(errors="replace").strip()
    except OSError:  # never started here, or not for this user to read
        return settings
    if not _ADDRESS.fullmatch(line):
        raise SettingsError(
            f"{file} does not hold an address such as http://127.0.0.1:8010;"
            " remove it, the next start of the service writes it again"
        )
    return dataclasses.replace(
        settings,
        web=dataclasses.replace(settings.web, public_url=line),
        sources={**settings.sources, "web.public_url": str(file)},
    )
