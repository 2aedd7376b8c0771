"""Address of the running service: `swingbot web` writes it to the state directory for commands.

A command in another terminal knows neither the `--port` passed to `swingbot up` nor the service's
settings file; the state directory is all they share.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Final

from swingbot.adapters import private_file
from swingbot.app import limits
from swingbot.app.settings import Settings, SettingsError

_ADDRESS: Final = re.compile(r"https?://[^\s/\"'<>][^\s\"'<>]*")


def file_of(state: Path) -> Path:
    """Path of the address file, which holds one line without a trailing slash."""
    return state / "address"


def record(settings: Settings) -> None:
    """Record the public address atomically. Raises OSError."""
    file = file_of(settings.state)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = private_file.aside(file, f"{settings.web_url}\n".encode(), 0o644)
    new.chmod(0o644)  # for commands of other users, whatever the umask
    new.replace(file)


def with_recorded(settings: Settings) -> Settings:
    """Return the settings with the recorded address as `web.public_url`.

    The settings are unchanged if no address is recorded or the command line sets a port. Raises
    SettingsError if the recorded address is not valid.
    """
    file = file_of(settings.state)
    if settings.sources.get("web.port") == "command line":
        return settings
    try:
        with file.open("rb") as source:
            line = source.read(limits.ADDRESS_CHARACTERS).decode(errors="replace").strip()
    except OSError:  # the service never ran here, or this user may not read the file
        return settings
    if not _ADDRESS.fullmatch(line):
        raise SettingsError(
            f"{file} does not contain an address such as http://127.0.0.1:8010;"
            " remove the file; the service writes it again on its next start"
        )
    return dataclasses.replace(
        settings,
        web=dataclasses.replace(settings.web, public_url=line),
        sources={**settings.sources, "web.public_url": str(file)},
    )
