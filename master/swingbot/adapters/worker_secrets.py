"""Secrets of workers: one file per worker, named as the worker, readable by its owner only, with
the secret on the first line.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from swingbot.adapters import private_file
from swingbot_jobs.contract import worker_secret


class SecretError(Exception):
    """A worker's secret is unavailable; the message names the file and says what to do."""


def read(file: Path) -> str:
    """Return the secret in `file`. Raises SecretError."""
    try:
        return worker_secret.read(file)
    except worker_secret.UnreadableSecret as error:
        raise SecretError(f"{file}: {error}; it must contain the worker's secret") from None
    except worker_secret.SecretTooShort as error:
        raise SecretError(
            f"{file}: the secret has {error.length} characters; it must have at least "
            f"{worker_secret.SHORTEST}"
        ) from None


def make(file: Path) -> bool:
    """Create a secret if there is none; return True if it is new. Raises SecretError."""
    try:
        if file.exists():
            return False
        _write(file)
    except OSError as error:
        raise SecretError(
            f"{file}: {error.strerror}; buildbot.secrets must name a writable directory"
        ) from None
    return True


def renew(file: Path) -> None:
    """Replace an existing secret by a new one. Raises SecretError."""
    try:
        _write(file)
    except OSError as error:
        raise SecretError(
            f"{file}: {error.strerror}; buildbot.secrets must name a writable directory"
        ) from None


def _write(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private_file.write(file, f"{secrets.token_hex(32)}\n".encode())
