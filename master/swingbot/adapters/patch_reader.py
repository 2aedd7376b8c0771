"""Read patches that a stranger sent, in a child process of their own for each request."""

from __future__ import annotations

import tempfile
from contextlib import closing
from datetime import datetime

from swingbot.adapters import limits
from swingbot.adapters.limited_reader import ReaderProcess
from swingbot.core.limits import SERIES_BYTES
from swingbot.core.patchset.model import OmittedMail, PatchSeries, SeriesError, SeriesPatch
from swingbot.service.ports.results import Unreadable
from swingbot_jobs import codec


def read_patches(name: str, data: bytes, *, stack: bool = False) -> PatchSeries:
    """Return the series in one file, as `core.patchset.read.read_file`. Raises SeriesError, also if
    reading it exceeds a limit.
    """
    reader = ReaderProcess(
        "patch_child",
        memory_bytes=limits.PATCH_READER_BYTES,
        seconds=limits.PATCH_READER_SECONDS,
        answer_bytes=3 * SERIES_BYTES,
    )
    with closing(reader), tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        try:
            answer = reader.ask({"name": name, "stack": stack}, file)
        except Unreadable as error:
            raise SeriesError(f"{name}: {error}") from None
    if "wrong" in answer:
        raise SeriesError(answer["wrong"])
    return PatchSeries(
        patches=tuple(
            SeriesPatch(
                **patch
                | {
                    "date": datetime.fromisoformat(patch["date"]) if patch["date"] else None,
                    "diff": patch["diff"].encode("latin-1"),
                }
            )
            for patch in answer["patches"]
        ),
        left_out=codec.typed(tuple[OmittedMail, ...], answer["left_out"]),
        notes=tuple(answer["notes"]),
    )
