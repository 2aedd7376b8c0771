"""Files of a run: those of results.tar that belong to it, and documents derived from the database.

All are read and sent in pieces: one run may have many samples and large files.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import operator
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from swingbot.core.model.artifact import ArtifactError, Gone
from swingbot.core.raw.tar_members import PIECE_BYTES, TarMember, members
from swingbot_jobs.limits import RESULT_NOTES

from ..ports import OpenArtifact, Row

Samples = Callable[[], Iterator[tuple[str, float]]]


class Listed(NamedTuple):
    path: str
    size: int
    sha256: str


class Content(NamedTuple):
    """`size` in bytes; None if it is only known at the end."""

    size: int | None
    pieces: Iterator[bytes]


@dataclass(slots=True)
class RunFiles:
    """`run` is the document of `read.result_run`; `samples` reads the run's samples by metric.

    Derived documents are samples under LKP's name, facts of the boot, and the unit job. `notes`
    says which files cannot be shown.
    """

    run: Row
    samples: Samples
    artifact: OpenArtifact
    notes: list[str] = field(default_factory=list)

    def listing(self) -> list[Listed]:
        """Every file by its path, with its checksum."""
        files = {name: _listed(name, self._document(name)) for name in self._documents()}
        try:
            for member in self._members():
                files.setdefault(member.path, _listed(member.path, member.pieces()))
        except tarfile.ReadError as error:
            self.notes.append(str(error))
        del self.notes[RESULT_NOTES:]
        return [files[path] for path in sorted(files)]

    def content(self, name: str) -> Content | None:
        """One file; None if the run has no such file."""
        if name in self._documents():
            return Content(None, self._document(name))
        walk = self._members()
        for member in walk:
            if member.path == name:
                return Content(member.size, _pieces(walk, member))
        return None

    def _documents(self) -> list[str]:
        facts, job = self.run["boot"]["facts"], self.run["unit_job"]
        return [
            "stats.json",
            *(["facts.json"] if facts is not None else []),
            *(["job.json"] if job is not None else []),
        ]

    def _document(self, name: str) -> Iterator[bytes]:
        if name == "stats.json":
            return _joined(_stats(self.samples()))
        content = self.run["boot"]["facts"] if name == "facts.json" else self.run["unit_job"]
        return iter([(json.dumps(content, indent=1, sort_keys=True) + "\n").encode()])

    def _members(self) -> Iterator[TarMember]:
        """The run's files in results.tar; a file is to be read before the next one."""
        results = (self.run["boot"]["files"] or {}).get("results.tar")
        if results is None:
            self.notes.append("the boot delivered no results")
            return
        mine = (self.run["run"]["unit_job"], self.run["run"]["number"])
        try:
            with self.artifact(results["sha256"]) as tar:
                for member in members(tar, self.notes.append):
                    if (member.unit_job, member.run) == mine:
                        yield member
        except Gone as error:
            self.notes.append(f"results.tar was {error}")
        except FileNotFoundError:
            self.notes.append(
                f"results.tar is no longer in the artifact store (sha256 {results['sha256']})"
            )
        except ArtifactError as error:
            self.notes.append(f"results.tar cannot be read: {error}")


def _pieces(walk: Iterator[TarMember], member: TarMember) -> Iterator[bytes]:
    with closing(walk):  # type: ignore[type-var]  # a generator
        yield from member.pieces()


def _listed(path: str, pieces: Iterable[bytes]) -> Listed:
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return Listed(path, size, digest.hexdigest())


def _stats(samples: Iterator[tuple[str, float]]) -> Iterator[str]:
    """LKP's stats.json as `json.dumps(..., indent=1)` writes it: a number, or a list of them."""
    yield "{"
    comma = ""
    for metric, group in itertools.groupby(samples, key=operator.itemgetter(0)):
        before, several = "", False  # the last value is written when the next one is known
        for _, value in group:
            if before:
                yield f",\n  {before}" if several else f"[\n  {before}"
                several = True
            else:
                yield f"{comma}\n {json.dumps(metric)}: "
            before = json.dumps(value)
        yield f",\n  {before}\n ]" if several else before
        comma = ","
    yield "\n}\n" if comma else "}\n"


def _joined(texts: Iterator[str]) -> Iterator[bytes]:
    """Join short texts: each piece of a response has a cost."""
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= PIECE_BYTES:
            yield "".join(block).encode()
            block, size = [], 0
    yield "".join(block).encode()
