"""Read mails and patches of strangers in a child process of its own for each request."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import islice
from typing import IO, Any, Final

from swingbot.adapters import limits
from swingbot.adapters.limited_reader import ReaderProcess
from swingbot.core.limits import SERIES_BYTES
from swingbot.core.patchset.model import (
    OmittedMail,
    PatchSeries,
    PatchSource,
    SeriesError,
    SeriesPatch,
)
from swingbot.core.patchset.touched import TouchedFile
from swingbot.service.ports.results import Unreadable
from swingbot_jobs import codec

TOGETHER: Final = 100  # mails that are read by one question

Head = Mapping[str, str]
"""Subject, from, to, cc, date, message-id and in-reply-to of a mail; empty if missing."""


def mail_reader(answer_bytes: int = 3 * SERIES_BYTES) -> closing[ReaderProcess]:
    """A child for what a block asks; `adapters.mail_child` lists the questions."""
    return closing(
        ReaderProcess(
            "mail_child",
            memory_bytes=limits.MAIL_READER_BYTES,
            seconds=limits.MAIL_READER_SECONDS,
            answer_bytes=answer_bytes,
        )
    )


def read_patches(sources: Sequence[PatchSource], *, stack: bool = False) -> PatchSeries:
    """Return the series in `sources`, as `core.patchset.read.read_series`. Raises SeriesError, also
    if reading it exceeds a limit.
    """
    question = {"read": "series", "sources": [_sizes(one) for one in sources], "stack": stack}
    data = b"".join(file.data for source in sources for file in source.files)
    try:
        answer = _asked(question, data)
    except Unreadable as error:
        names = ", ".join(source.name for source in sources[:3])
        raise SeriesError(f"{names}: {error}") from None
    if "wrong" in answer:
        raise SeriesError(answer["wrong"])
    return PatchSeries(
        patches=tuple(
            SeriesPatch(
                **patch
                | {
                    "date": datetime.fromisoformat(patch["date"]) if patch["date"] else None,
                    "diff": patch["diff"].encode("latin-1"),
                    "touched": tuple(map(_touched, patch["touched"])),
                }
            )
            for patch in answer["patches"]
        ),
        left_out=codec.typed(tuple[OmittedMail, ...], answer["left_out"]),
        notes=tuple(answer["notes"]),
    )


def _touched(file: tuple[list[str], list[str], int]) -> TouchedFile:
    before, after, length = file
    return TouchedFile(before=_names(before), after=_names(after), length=length)


def _names(names: Iterable[str]) -> frozenset[bytes]:
    return frozenset(name.encode("latin-1") for name in names)


def read_heads(mails: Iterable[bytes]) -> list[Head]:
    """Return the headers of each mail. Few of the mails are in memory at a time. Raises
    Unreadable.
    """
    left, heads = iter(mails), list[Head]()
    with mail_reader() as reader:
        while some := list(islice(left, TOGETHER)):
            with spooled(some) as file:
                asked = {"read": "heads", "sizes": list(map(len, some))}
                heads += reader.ask(asked, file)["heads"]
    return heads


def read_mail(data: bytes) -> tuple[Head, str]:
    """Return the headers of a mail and its first text. Raises Unreadable."""
    answer = _asked({"read": "mail"}, data)
    return answer["head"], answer["text"]


def _sizes(source: PatchSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "files": [(file.name, len(file.data)) for file in source.files],
        "ordered": source.ordered,
        "ignored": source.ignored,
    }


def _asked(request: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    with mail_reader() as reader, spooled([data]) as file:
        return reader.ask(request, file)


@contextmanager
def spooled(data: Iterable[bytes]) -> Iterator[IO[bytes]]:
    """A file with `data` that has a descriptor."""
    with tempfile.TemporaryFile() as file:
        file.writelines(data)
        file.seek(0)
        yield file
