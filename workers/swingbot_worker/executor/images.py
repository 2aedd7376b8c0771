"""Kernel images on this host, by content: downloaded once and kept while there is space."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from swingbot_worker.executor.client import ExchangeClient, patiently

KEEP_BYTES = 4 << 30


def fetch(
    cache: Path,
    sha256: str,
    exchange: ExchangeClient,
    say: Callable[[str], None],
    patience_seconds: float,
) -> Path:
    """Return the image with this content, from the cache or else from the service.

    Raises ServiceUnavailable or InfraError.
    """
    directory = cache / "images"
    directory.mkdir(parents=True, exist_ok=True)
    image = directory / sha256
    if image.is_file():
        os.utime(image)
        return image
    temporary = directory / f".{sha256}.{secrets.token_hex(4)}"
    try:
        patiently(lambda: exchange.get_file(sha256, temporary), say, patience_seconds)
        temporary.replace(image)
    finally:
        temporary.unlink(missing_ok=True)
    say(f"fetched the kernel image, {image.stat().st_size / 1e6:.1f} MB")
    prune(directory, KEEP_BYTES, keep=image)
    return image


def prune(directory: Path, limit_bytes: int, keep: Path) -> list[str]:
    """Delete the least recently used images until the rest fits in `limit_bytes`, but never `keep`.

    Returns the names of the deleted images.
    """
    images = sorted(
        (file for file in directory.iterdir() if not file.name.startswith(".")),
        key=lambda file: file.stat().st_mtime,
        reverse=True,
    )
    total, deleted = 0, []
    for image in images:
        total += image.stat().st_size
        if total > limit_bytes and image != keep:
            image.unlink(missing_ok=True)
            deleted.append(image.name)
    return deleted
