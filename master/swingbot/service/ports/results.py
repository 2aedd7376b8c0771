"""Port: parse the results of a boot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any, Protocol

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.reading.result import ParsedRun


class Unreadable(Exception):
    """The results cannot be read within the limits; the message says which, about "them"."""


class ReadingStopped(Unreadable):
    """A limit of ours ended the reader, which says nothing about the boot."""


class TooMuchReading(ReadingStopped):
    """It was the limit of processor time, which would end it again."""


class ResultReader(Protocol):
    def parse(
        self,
        tar: IO[bytes],
        unit_jobs: Sequence[UnitJob],
        facts: Mapping[str, Any] | None,
    ) -> list[ParsedRun]:
        """Return every expected run, in order. Raises Unreadable, ReadingStopped."""
