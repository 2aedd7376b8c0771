"""Write files of secrets: with restricted `mode` from the first moment, and atomically."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

OWNER_ONLY = 0o600


def write(file: Path, content: bytes, mode: int = OWNER_ONLY) -> None:
    """Write `content` to `file`, replacing earlier content. Raises OSError."""
    aside(file, content, mode).replace(file)


def aside(file: Path, content: bytes, mode: int = OWNER_ONLY) -> Path:
    """Write `content` to a temporary file in the directory of `file`, synced to disk, and return
    it; the caller renames it. Raises OSError.
    """
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    return temporary
