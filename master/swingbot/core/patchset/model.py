"""A patch series, what was left out of it, and the limits of what is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

SERIES_BYTES: Final = 32 << 20  # of all files together
MOST_PATCHES: Final = 1000  # larger: a vendor tree, which is fetched as a branch
MOST_MAILS: Final = 5000  # with cover letters and replies
MESSAGE_BYTES: Final = 256 << 10  # of a commit message; it is shown on pages
SUBJECT_CHARACTERS: Final = 1000
_TRAILER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}: \S|[ \t]|\[")


class SeriesError(ValueError):
    """The input is not a patch series that can be applied; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchFile:
    """A file as it was given. `name` is shown in errors, and is the subject of a bare diff."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSource:
    """Files that one argument named.

    `ordered`: their order holds whatever their subjects say, as in quilt.
    """

    name: str
    files: tuple[PatchFile, ...]
    ordered: bool = False
    ignored: tuple[str, ...] = ()  # other files of a directory


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPatch:
    """One patch, ready to be committed.

    `number` is its position in the series, from 1. `subject` is one line without `[PATCH ...]`.
    `author` is `Name <address>`, empty if unknown. `message_id` has its <>. `message` is the
    whole commit message, its subject first, without notes and signature; it ends in a newline.
    `diff` is a unified diff in the bytes of the files that it changes.
    """

    number: int
    subject: str
    author: str
    date: datetime | None
    message_id: str | None
    message: str
    diff: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedMail:
    """A mail or file that is not applied, and why.

    `subject` is one line: of the mail, or the file's name.
    """

    subject: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSeries:
    """Patches in the order in which they apply, and what was left out."""

    patches: tuple[SeriesPatch, ...]
    left_out: tuple[OmittedMail, ...] = ()


def commit_message(patch: SeriesPatch) -> str:
    """The patch's message, with a `Message-ID:` trailer unless the message has that ID already."""
    if patch.message_id is None or patch.message_id.strip("<>") in patch.message:
        return patch.message
    paragraphs = patch.message.rstrip("\n").split("\n\n")
    trailers = len(paragraphs) > 1 and all(map(_TRAILER.match, paragraphs[-1].split("\n")))
    gap = "" if trailers else "\n"
    return f"{patch.message}{gap}Message-ID: {patch.message_id}\n"
