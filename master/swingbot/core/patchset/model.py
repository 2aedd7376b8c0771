"""A patch series, the omitted mails, and the limits of the input."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from swingbot.core.patchset.touched import TouchedFile
from swingbot.core.text.plain import cut

_TRAILER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}: \S|[ \t]|\[")


class SeriesError(ValueError):
    """The input is not a patch series that can be applied; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchFile:
    """An input file. `name` is shown in errors, and is the subject of a bare diff."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSource:
    """The files that one argument named.

    `ordered`: their order applies whatever their subjects say, as in quilt.
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
    `diff` is a unified diff in the bytes of the files that it changes, `touched` are those files if
    they were counted where it was read.
    """

    number: int
    subject: str
    author: str
    date: datetime | None
    message_id: str | None
    message: str
    diff: bytes
    touched: tuple[TouchedFile, ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedMail:
    """A mail or file that is not applied, and the reason.

    `subject` is one line: the subject of the mail, or the file's name. `author` is that of its
    patch, as of a SeriesPatch.
    """

    subject: str
    reason: str
    author: str = ""

    def __str__(self) -> str:
        by = f" by {cut(self.author, 60)}" if self.author else ""
        return f"{cut(self.subject, 80)}{by} ({self.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSeries:
    """Patches in the order in which they apply, the omitted mails, and remarks on the order."""

    patches: tuple[SeriesPatch, ...]
    left_out: tuple[OmittedMail, ...] = ()
    notes: tuple[str, ...] = ()


def commit_message(patch: SeriesPatch) -> str:
    """Return the patch's message, with a `Message-ID:` trailer unless it already has that ID."""
    if patch.message_id is None or patch.message_id.strip("<>") in patch.message:
        return patch.message
    paragraphs = patch.message.rstrip("\n").split("\n\n")
    trailers = len(paragraphs) > 1 and all(map(_TRAILER.match, paragraphs[-1].split("\n")))
    gap = "" if trailers else "\n"
    return f"{patch.message}{gap}Message-ID: {patch.message_id}\n"
