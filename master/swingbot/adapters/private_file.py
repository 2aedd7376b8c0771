"""Files of secrets: readable by whom `mode` says from their first moment, and there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

OWNER_ONLY = 0o600


def write(file: Path, content: bytes, mode: int = OWNER_ONLY) -> None:
    """Let `file` hold `content`, in place of what was there. Raises OSError."""
    aside(file, content, mode).replace(file)


def aside(file: Path, content: bytes, mode: int = OWNER_ONLY) -> Path:
    """`content` under a name of its own beside `file`, on the disk; the caller gives it its name. Raises OSError."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    return temporary
