"""The journal of a bisection: one JSON object a line, appended and synced, from which everything is known again after any end.

    {"begin": {...}}                                             what is bisected, how, and by which CMD
    {"ask": [[sha, k], ...], "part": "", "phase": "ends", ...}   before these boots; [sha, k, layout] where not layout 0
    {"boot": sha, "k": 0, "part": "", "values": [...], ...}      after each boot

A line that was cut off by a crash or a full disk was never acted on: it is dropped.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, cast, get_args

from swingbot.app.bisect_run.failures import RunError, UsageError
from swingbot.core.model.statuses import Phase

FORMAT: Final = 1
_HEAD: Final = "# journal of `swingbot bisect run`; the same command goes on from here, --restart begins anew\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRequest:
    """Boot k of a commit, wanted by the bisection `part` ("" the range itself, else the merge whose branch is searched)."""

    part: str
    sha: str
    k: int
    phase: Phase
    layout: int = 0  # in which layout of its code CMD is to build the commit


@dataclass(frozen=True, slots=True, kw_only=True)
class BootResult:
    """What came of it. `at` and `seconds`: begin, since the bisection began, and length."""

    part: str
    sha: str
    k: int
    phase: Phase
    values: tuple[float, ...]
    failed: str | None
    untestable: str | None
    at: float
    seconds: float
    layout: int = 0


@dataclass(kw_only=True)
class Journal:
    """The facts, and the open file they are written to."""

    path: Path
    begin: dict[str, Any]
    asked: list[BootRequest] = field(default_factory=list)
    booted: list[BootResult] = field(default_factory=list)
    file: int = -1

    def ask(self, wanted: list[BootRequest], why: str) -> None:
        first = wanted[0]
        self._append(
            {
                "ask": [[w.sha, w.k, w.layout] if w.layout else [w.sha, w.k] for w in wanted],
                "part": first.part,
                "phase": first.phase,
                "why": why,
            }
        )
        self.asked += wanted

    def boot(self, boot: BootResult) -> None:
        facts = asdict(boot)
        if not boot.layout:
            del facts["layout"]
        self._append(
            {"boot": facts.pop("sha"), **{k: v for k, v in facts.items() if v is not None}}
        )
        self.booted.append(boot)

    def unanswered(self, part: str) -> list[BootRequest]:
        """Asked for in this part and not booted, in the order of asking; boots of commits that proved untestable are off."""
        done = {(b.part, b.sha, b.k) for b in self.booted}
        off = {b.sha for b in self.booted if b.untestable}
        return [
            a
            for a in self.asked
            if a.part == part and (part, a.sha, a.k) not in done and a.sha not in off
        ]

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
                f"the journal {self.path} cannot be written ({error.strerror}); make room and start the same command again"
            ) from None


def open_journal(
    path: Path, begin: dict[str, Any], *, restart: bool, loose: frozenset[str]
) -> Journal:
    """Begin the journal, or go on with it if it is of the same bisection. Keys in `loose` may differ from the last call.

    Raises Misuse for another bisection's journal and for one in use, Trouble for a damaged or unwritable one.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RunError(
            f"the journal {path} cannot be opened ({error.strerror}); give another place with --state DIR"
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
            f"the journal {journal.path} cannot be written ({error.strerror}); give another place with --state DIR"
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
            f"another `swingbot bisect run` is at work on {path}; wait for it, or give this one a place of its own with --state DIR"
        ) from None


def _whole_lines(handle: int) -> list[str]:
    """Lines with their end; what follows the last one is cut off."""
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
                phase = _phase(record["phase"])
                journal.asked += [
                    BootRequest(
                        part=str(record["part"]),
                        sha=str(sha),
                        k=int(k),
                        phase=phase,
                        layout=int(layout[0]) if layout else 0,
                    )
                    for sha, k, *layout in record["ask"]
                ]
            else:
                journal.booted.append(_booted(record))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunError(
                f"{journal.path}, line {number} is damaged; mend it, or begin anew with --restart"
            ) from None
    if "cmd" not in journal.begin or '"begin"' not in "".join(lines[:2]):
        raise RunError(
            f"{journal.path} does not begin as a journal of `swingbot bisect run` does; begin anew with --restart"
        )


def _booted(record: Mapping[str, Any]) -> BootResult:
    values = tuple(float(v) for v in record.get("values", ()))
    if not all(math.isfinite(v) for v in values):
        raise ValueError("not finite")
    return BootResult(
        part=str(record["part"]),
        sha=str(record["boot"]),
        k=int(record["k"]),
        phase=_phase(record["phase"]),
        values=values,
        failed=record.get("failed"),
        untestable=record.get("untestable"),
        at=float(record["at"]),
        seconds=float(record["seconds"]),
        layout=int(record.get("layout", 0)),
    )


def _phase(text: str) -> Phase:
    if text not in get_args(Phase):
        raise ValueError(text)
    return cast(Phase, text)


def _same(
    path: Path, old: Mapping[str, Any], new: Mapping[str, Any], loose: frozenset[str]
) -> None:
    if old.get("format") != FORMAT:
        raise UsageError(
            f"{path} was written by another version of swingbot; begin anew with --restart"
        )
    for key, value in new.items():
        if key not in loose and old.get(key) != value:
            raise UsageError(
                f"{path} is a bisection of the same range with another {_WORDS.get(key, key)} ({_short(old.get(key))}, now {_short(value)}); "
                "give what it was begun with to go on, --restart to begin anew, or --state DIR to keep both"
            )


_WORDS: Final = {"cmd": "CMD"}


def _short(value: object) -> str:
    text = " ".join(value) if isinstance(value, list) else str(value)
    return text if len(text) <= 120 else text[:117] + "..."
