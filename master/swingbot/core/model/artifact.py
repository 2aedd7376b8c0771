"""Why a raw result was not taken into the store."""

from __future__ import annotations


class ArtifactError(Exception):
    """A file was not taken; the message says why."""


class WrongDigest(ArtifactError):
    """The bytes are not those that the name promises."""


class TooLarge(ArtifactError):
    """The file is larger than the store takes."""


class NoSpace(ArtifactError):
    """The disk of the store is full."""
