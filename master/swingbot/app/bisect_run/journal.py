"""Journal of a bisection: one JSON object per line, appended and synced; it survives any crash.

    {"begin": {...}}                                 range, options and CMD; again when a resumed
                                                     bisection begins to vary layouts
    {"ask": [[sha, k], ...], "part": "", ...}        before these boots; [sha, k, layout] if not 0,
                                                     with the commit of a control as a fourth
    {"boot": sha, "k": 0, "values": [...], ...}      after each boot

A line truncated by a crash or a full disk was never acted on, so it is dropped.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from swingbot.app.bisect_run.failures import RunError, UsageError
from swingbot.core.model.statuses import Phase
from swingbot_jobs import codec
from swingbot_jobs.codec import Named, Sparse

FORMAT: Final = 1
_ASKED: Final = ("sha", "k", "layout", "control")
_HEAD: Final = (
    "# journal of `swingbot bisect run`; the same command resumes it, --restart starts over\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRequest:
    """Boot k of a commit, requested by the bisection `part` ("": the range; else "MERGE:TIP")."""

    part: str
    sha: str
    k: int
    phase: Phase
    layout: int = 0  # code layout in which CMD builds the commit, or number of its control
    control: str = ""  # the commit that is measured in its place

    @property
    def built_in(self) -> int:
        """The code layout in which it is built."""
        return 0 if self.control else self.layout


@dataclass(frozen=True, slots=True, kw_only=True)
class BootResult:
    """Result of a boot. `at`: start, in seconds since the bisection began; `seconds`: duration."""

    sha: Annotated[str, Named("boot")]
    part: str
    k: int
    phase: Phase
    values: tuple[float, ...]
    failed: Sparse[str | None] = None
    untestable: Sparse[str | None] = None
    at: float
    seconds: float
    layout: Sparse[int] = 0
    control: Sparse[str] = ""
    unvaried: Sparse[str | None] = None  # why what was booted is not in another layout
    image: Sparse[str] = ""  # SHA-256 of --image after the boot

    @property
    def built_in(self) -> int:
        """The code layout in which it was asked to be built."""
        return 0 if self.control else self.layout


@dataclass(kw_only=True)
class Journal:
    """Contents of the journal, and the open file."""

    path: Path
    begin: dict[str, Any]
    asked: list[BootRequest] = field(default_factory=list)
    booted: list[BootResult] = field(default_factory=list)
    file: int = -1

    def ask(self, wanted: list[BootRequest], why: str) -> None:
        first = wanted[0]
        self._append(
            {
                "ask": [_ask(w) for w in wanted],
                "part": first.part,
                "phase": first.phase,
                "why": why,
            }
        )
        self.asked += wanted

    def boot(self, boot: BootResult) -> None:
        self._append(codec.plain(boot))
        self.booted.append(boot)

    def vary_by(self, recipe: str | None) -> None:
        """Go on with this recipe of `--layouts`.

        Raises UsageError if boots are there whose number of a layout means another image.
        """
        before = self.begin.get("layouts")
        if recipe is None or recipe == before:
            return
        if any(a.layout for a in self.asked):
            how = f"--layouts {before}" if before else "controls, as there was no --layouts"
            raise UsageError(
                f"{self.path} has other images by {how}, which do not count with --layouts"
                f" {recipe}; give the original one to resume, --restart to start over, or --state"
                " DIR to keep both"
            )
        self.begin = {**self.begin, "layouts": recipe}
        self._append({"begin": self.begin})

    def booted_until(self, part: str) -> list[BootResult]:
        """Boots of this part and of the parts before it, in order of time.

        A part that is judged again, as when a bisection is resumed, knows what it knew at first.
        """
        parts = list(dict.fromkeys(a.part for a in self.asked))
        if part not in parts:
            return self.booted
        until = set(parts[: parts.index(part) + 1])
        return [b for b in self.booted if b.part in until]

    def unanswered(self, part: str) -> list[BootRequest]:
        """Requests of this part without a result, oldest first; untestable commits are left out."""
        done = {(b.part, b.sha, b.k) for b in self.booted}
        untestable = {b.sha for b in self.booted if b.untestable}
        return [
            a
            for a in self.asked
            if a.part == part and (part, a.sha, a.k) not in done and a.sha not in untestable
        ]

    @property
    def unvaried(self) -> str | None:
        """Why the layout cannot be varied, from the first boot that shows it."""
        return next((b.unvaried for b in self.booted if b.unvaried), None)

    def unanswered_anywhere(self) -> bool:
        return any(self.unanswered(part) for part in {a.part for a in self.asked})

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def _append(self, record: Mapping[str, Any]) -> None:
        data = (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode(
            "utf-8", "backslashreplace"
        )
        try:
            while data:
                data = data[os.write(self.file, data) :]
            os.fsync(self.file)
        except OSError as error:
            raise RunError(
                f"cannot write the journal {self.path} ({error.strerror}); free some disk space and"
                " run the same command again"
            ) from None


def _ask(wanted: BootRequest) -> list[str | int]:
    short: list[str | int] = [wanted.sha, wanted.k]
    if wanted.layout:
        short.append(wanted.layout)
    return [*short, wanted.control] if wanted.control else short


def open_journal(
    path: Path, begin: dict[str, Any], *, restart: bool, loose: frozenset[str]
) -> Journal:
    """Create the journal, or resume it if it belongs to the same bisection.

    Keys in `loose` may differ from the last invocation. Raises UsageError if the journal belongs to
    another bisection or is in use, RunError if it is damaged or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RunError(
            f"cannot open the journal {path} ({error.strerror}); choose another directory with"
            " --state DIR"
        ) from None
    journal = Journal(path=path, begin=begin, file=handle)
    try:
        _lock(handle, path)
        if restart:
            os.ftruncate(handle, 0)
        lines = _whole_lines(handle)
        if lines:
            _load(journal, lines, begin, loose)
        else:
            _begin(journal)
    except BaseException:
        journal.close()
        raise
    return journal


def _begin(journal: Journal) -> None:
    try:
        os.ftruncate(journal.file, 0)
        os.write(journal.file, _HEAD.encode())
    except OSError as error:
        raise RunError(
            f"cannot write the journal {journal.path} ({error.strerror}); choose another directory"
            " with --state DIR"
        ) from None
    journal._append({"begin": {"format": FORMAT, **journal.begin}})
    directory = os.open(journal.path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(
            f"another `swingbot bisect run` is using {path}; wait for it, or choose another"
            " directory with --state DIR"
        ) from None


def _whole_lines(handle: int) -> list[str]:
    """Complete lines of the file; an incomplete last line is truncated."""
    data = b""
    while chunk := os.pread(handle, 1 << 20, len(data)):
        data += chunk
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.ftruncate(handle, whole)
    lines = data[:whole].decode("utf-8", "replace").split("\n")
    return [] if all(line.startswith("#") or not line.strip() for line in lines) else lines


def _load(journal: Journal, lines: list[str], begin: dict[str, Any], loose: frozenset[str]) -> None:
    for number, line in enumerate(lines, 1):
        if line.startswith("#") or not line.strip():
            continue
        try:
            record = json.loads(line)
            if "begin" in record:
                _same(journal.path, record["begin"], begin, loose)
                journal.begin = record["begin"]
            elif "ask" in record:
                about = {name: record[name] for name in ("part", "phase")}
                journal.asked += [
                    codec.typed(BootRequest, dict(zip(_ASKED, boot, strict=False)) | about)
                    for boot in record["ask"]
                ]
            else:
                journal.booted.append(codec.typed(BootResult, record))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunError(
                f"{journal.path}, line {number} is damaged; repair it, or start over with --restart"
            ) from None
    if "cmd" not in journal.begin or '"begin"' not in "".join(lines[:2]):
        raise RunError(
            f"{journal.path} does not start like a journal of `swingbot bisect run`; start over"
            " with --restart"
        )


def _same(
    path: Path, old: Mapping[str, Any], new: Mapping[str, Any], loose: frozenset[str]
) -> None:
    if old.get("format") != FORMAT:
        raise UsageError(
            f"{path} was written by another version of swingbot; start over with --restart"
        )
    for key, value in new.items():
        if key not in loose and old.get(key) != value:
            raise UsageError(
                f"{path} is a bisection of the same range with another {_WORDS.get(key, key)}"
                f" ({_short(old.get(key))}, now {_short(value)}); give the original one to resume,"
                " --restart to start over, or --state DIR to keep both"
            )


_WORDS: Final = {"cmd": "CMD"}


def _short(value: object) -> str:
    text = " ".join(value) if isinstance(value, list) else str(value)
    return text if len(text) <= 120 else text[:117] + "..."
