"""A secret for each worker: one file named as the worker, readable by its owner only, its content on the first line."""

from __future__ import annotations

import secrets
from pathlib import Path

from swingbot.adapters import private_file
from swingbot_jobs.contract import worker_secret


class SecretError(Exception):
    """A worker's secret cannot be had; the message names the file and says what to do."""


def read(file: Path) -> str:
    """The secret in `file`. Raises SecretError."""
    try:
        return worker_secret.read(file)
    except worker_secret.UnreadableSecret as error:
        raise SecretError(f"{file}: {error}; it has to hold the worker's secret") from None
    except worker_secret.SecretTooShort as error:
        raise SecretError(
            f"{file}: a secret of {error.length} characters; it has to have {worker_secret.SHORTEST} at least"
        ) from None


def make(file: Path) -> bool:
    """Make sure that there is a secret; True if it is new. Raises SecretError."""
    try:
        if file.exists():
            return False
        _write(file)
    except OSError as error:
        raise SecretError(
            f"{file}: {error.strerror}; buildbot.secrets has to name a directory that can be written"
        ) from None
    return True


def renew(file: Path) -> None:
    """Put another secret in the place of the one that is there. Raises SecretError."""
    try:
        _write(file)
    except OSError as error:
        raise SecretError(
            f"{file}: {error.strerror}; buildbot.secrets has to name a directory that can be written"
        ) from None


def _write(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private_file.write(file, f"{secrets.token_hex(32)}\n".encode())
