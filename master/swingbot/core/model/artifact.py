"""Why a raw result was not taken into the store, or cannot be read from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


class ArtifactError(Exception):
    """A file was not taken or cannot be read; the message says why."""


class WrongDigest(ArtifactError):
    """The bytes are not those that the name promises."""


class TooLarge(ArtifactError):
    """The file is larger than the store takes."""


class NoSpace(ArtifactError):
    """The disk of the store is full."""


class Damaged(ArtifactError):
    """A stored file is not what was stored: a bad disk, or somebody changed it."""


class Gone(FileNotFoundError):
    """A file was in the store and has been pruned; the message says when and by which rule."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """When a file went, and why in words: `pruned on 2026-06-01 by the rule ...`."""

    at: datetime
    why: str
