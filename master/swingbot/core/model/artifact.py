"""Errors of storing and reading raw results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


class ArtifactError(Exception):
    """A file was not stored or cannot be read; the message says why."""


class WrongDigest(ArtifactError):
    """The content does not match the digest in the name."""


class TooLarge(ArtifactError):
    """The file exceeds the size limit of the store."""


class NoSpace(ArtifactError):
    """The disk of the store is full."""


class Damaged(ArtifactError):
    """A stored file has changed, by a disk error or by modification."""


class Gone(FileNotFoundError):
    """A file has been pruned from the store; the message says when and by which rule."""


def missing_words(error: Exception, sha256: str) -> str:
    """Say why a file of the store is missing, given the exception that opening it raised."""
    if isinstance(error, Gone):
        return f"it was {error}"
    if isinstance(error, FileNotFoundError):
        return f"it is no longer in the artifact store (sha256 {sha256})"
    return str(error)


@dataclass(frozen=True, slots=True)
class Pruned:
    """When a file was pruned and why: `pruned on 2026-06-01 by the rule ...`."""

    at: datetime
    why: str
