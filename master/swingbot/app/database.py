"""Database addresses and passwords from the settings."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from swingbot.app import postgres
from swingbot.app.settings import Settings, SettingsError


def database_url(settings: Settings) -> str:
    """Database URL with password: `db.url`, else the embedded database. Raises SettingsError."""
    return _url(settings.db.url, settings.db.password_file, "db.password_file") or postgres.url(
        settings.state
    )


def owner_url(settings: Settings) -> str:
    """URL of the same database for the role that may change tables. Raises SettingsError."""
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
    """Return `url` with the password from `file`, if given. Raises SettingsError."""
    return _url(url, str(file or ""), "the password file")


def of_role(url: str, role: str, file: Path | None) -> str:
    """Return `url` for another role, with the password from `file`, if given. Raises
    SettingsError.
    """
    own = sa.make_url(url).set(username=role, password=None)
    return with_password(own.render_as_string(), file)


def password(file: Path, key: str) -> str:
    """Read the first line of `file`. Raises SettingsError if it is missing or empty."""
    try:
        lines = file.expanduser().read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not valid UTF-8 text"
        raise SettingsError(f"{key}: cannot read the password from {file}: {why}") from None
    if not lines or not lines[0].strip():
        raise SettingsError(f"{key}: {file} is empty; write the password on its first line")
    return lines[0].strip()
