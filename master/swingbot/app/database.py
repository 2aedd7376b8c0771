"""Which database the settings mean, and as whom."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from swingbot.app import postgres
from swingbot.app.settings import Settings, SettingsError


def database_url(settings: Settings) -> str:
    """The database that the settings mean: `db.url`, or else the embedded one under the state directory. Holds the password; raises SettingsError."""
    return _url(settings.db.url, settings.db.password_file, "db.password_file") or postgres.url(
        settings.state
    )


def owner_url(settings: Settings) -> str:
    """The same database as the role that may change tables; raises SettingsError."""
    return _url(
        settings.db.owner_url, settings.db.owner_password_file, "db.owner_password_file"
    ) or database_url(settings)


def _url(url: str, password_file: str, key: str) -> str:
    if not url or not password_file:
        return url
    return (
        sa.make_url(url)
        .set(password=password(Path(password_file), key))
        .render_as_string(hide_password=False)
    )


def with_password(url: str, file: Path | None) -> str:
    """`url` with the password from `file`, if there is one. Raises SettingsError."""
    return _url(url, str(file or ""), "the password file")


def password(file: Path, key: str) -> str:
    """The first line of `file`; raises SettingsError if there is none."""
    try:
        lines = file.expanduser().read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{key}: the password cannot be read from {file}: {why}") from None
    if not lines or not lines[0].strip():
        raise SettingsError(f"{key}: {file} is empty; write the password on its first line")
    return lines[0].strip()
