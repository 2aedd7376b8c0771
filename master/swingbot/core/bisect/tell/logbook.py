"""The journal of a bisection as text, similar to `git bisect log`.

Lines that start with # are for people; `replay` reads the others. The text depends only on stored
data, so two logs of one bisection are identical.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swingbot.core import limits
from swingbot.core.bisect.tell.journal import (
    ENGINE,
    VERSION,
    Facts,
    JournalError,
    JournalStep,
    text,
)
from swingbot_jobs import codec
from swingbot_jobs.printable import printable

_SHOWN: Final = ("policy", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Logbook:
    """Content of a log.

    `head`, `steers` and `end` are plain JSON; `commits` are (commit, subject) by point.
    """

    head: Facts
    commits: Sequence[tuple[str, str]]
    steps: Sequence[JournalStep]
    steers: Sequence[Facts]  # each with `at`
    end: Facts | None


def records(book: Logbook) -> Iterator[tuple[list[str], Facts]]:
    """Yield (comment lines, record) in order of time."""
    yield _heading(book), {"version": VERSION, **book.head}
    for idx, (commit, subject) in enumerate(book.commits):
        yield [], {"point": idx, "commit": commit, "subject": subject}
    entries = [
        (
            entry.at,
            1,
            [*_results(book, entry.facts), *_changes(entry.facts), decided(entry)],
            codec.plain(entry),
        )
        for entry in book.steps
    ]
    entries += [
        (
            steer["at"],
            0,
            [f"{steer['at']} {act_of(steer, book.commits)}"],
            {"steer": steer["act"], **steer},
        )
        for steer in book.steers
    ]
    for _, _, comments, record in sorted(entries, key=lambda entry: entry[:2]):
        yield comments, record
    if book.end is not None:
        yield (
            [f"{book.end['at']} ended: {book.end['status']}: {book.end['reason']}"],
            {"end": book.end["status"], **book.end},
        )


def written(book: Logbook, *, people: bool = True) -> str:
    """Return the log as text; without `people` only the records, as JSON lines."""
    lines: list[str] = []
    for comments, record in records(book):
        lines += [f"# {_one_line(comment)}" for comment in comments if people]
        lines.append(text(record))
    return "\n".join(lines) + "\n"


def by_another(entry: JournalStep) -> str:
    """Say that another engine decided a step."""
    return (
        f"decided by engine {entry.engine}; this is engine {ENGINE}, which shows what was"
        " recorded and does not decide it again"
    )


def read(lines: Iterable[str]) -> list[JournalStep]:
    """Parse the steps of a log; comments are optional. Raises JournalError with the line number."""
    steps: list[JournalStep] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if len(line) > limits.JOURNAL_LINE_CHARACTERS:
            raise JournalError(
                f"line {number}: longer than {limits.JOURNAL_LINE_CHARACTERS} characters"
            )
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise JournalError(
                f"line {number}: not JSON; pass the output of `swingbot bisect log ID`"
            ) from None
        if not isinstance(record, dict):
            raise JournalError(f"line {number}: not a record of a log")
        if record.get("version", VERSION) != VERSION:
            raise JournalError(
                f"line {number}: a log of version {record['version']}; this swingbot reads"
                f" version {VERSION}"
            )
        if "step" in record:
            steps.append(_step(record, number, len(steps) + 1))
    if not steps:
        raise JournalError("it has no recorded steps to replay")
    return steps


def _step(record: Mapping[str, Any], line: int, expected: int) -> JournalStep:
    try:
        step = codec.typed(JournalStep, record, ignore_unknown=True)
    except codec.BadDocument as error:
        raise JournalError(f"line {line}: {error}") from None
    if step.number != expected:
        raise JournalError(
            f"line {line}: step {step.number} instead of step {expected}; a line is"
            " missing or was moved"
        )
    return step


def _heading(book: Logbook) -> list[str]:
    head = book.head
    return [
        (
            f"bisection {head['bisection']}: {head['metric']} of {head['unit_job']} on"
            f" {head['testbox']}, tree {head['tree']}"
        ),
        f"good {_name(book.commits, 0)}",
        f"bad  {_name(book.commits, len(book.commits) - 1)}",
        f"{len(book.commits) - 1} commits; asked {head['asked']} ({head['origin']})",
    ]


def _results(book: Logbook, facts: Facts) -> Iterator[str]:
    for o in facts.get("seen", ()):
        values = o.get("values") or ()
        result = (
            f"mean {sum(values) / len(values):.6g} of {len(values)} run{'s' * (len(values) != 1)}"
            if values
            else f"no value: {o.get('skip')}"
        )
        layout = f", layout {o['layout']}" if o.get("layout") else ""
        yield (
            f"result: point {o['idx']} ({_name(book.commits, o['idx'])}), boot"
            f" k={o['k']}{layout}, {o['phase']}: {result}"
        )


def _changes(facts: Facts) -> Iterator[str]:
    """Yield the other differences from the previous step that are of interest to a reader."""
    for name in _SHOWN:
        if name in facts:
            yield f"{name}: " + ", ".join(
                f"{key} {text(value)}" for key, value in sorted(facts[name].items())
            )
    for name, sentence in (
        ("weight", "weight {}"),
        ("skipped", "skipped: {}"),
        ("same_as", "the same image as point {}"),
        ("build_cost_seconds", "build {:.0f} s"),
    ):
        for first, last, value in facts.get("points", {}).get(name, ()):
            if value is not None:
                yield (
                    (f"point {first}" if first == last else f"points {first}..{last}")
                    + ": "
                    + sentence.format(value)
                )


def decided(entry: JournalStep) -> str:
    """Describe the decision of a step."""
    action = entry.action
    if action["do"] == "measure":
        boots = " ".join(
            f"{idx}/k{k}" + (f"/layout{layout}" if layout else "")
            for idx, k, layout, *_ in action["requests"]
        )
        return (
            f"step {entry.number} at {entry.at}: measure ({action['phase']}) {boots}:"
            f" {action['why']}"
        )
    if action["do"] == "wait":
        return f"step {entry.number} at {entry.at}: wait: {action['why']}"
    likely = "" if action.get("probability") is None else f" (P = {action['probability']:.4f})"
    return (
        f"step {entry.number} at {entry.at}: conclude {action['kind']}"
        f" {list(action['members'])}{likely}: {action['reason']}"
    )


def act_of(steer: Mapping[str, Any], commits: Sequence[tuple[str, str]]) -> str:
    """Describe a skip, hint or other command of a person."""
    which = ", ".join(commits[idx][0][:12] for idx in steer["points"][:5]) + (
        f" and {len(steer['points']) - 5} more" if len(steer["points"]) > 5 else ""
    )
    act = {
        "skip": f"skip {which}",
        "unskip": f"undo skip of {which}",
        "hint": f"hint {which}: {steer['factor']:g} times as likely" if steer["factor"] else "",
        "resume": f"resume with up to {steer['boots']} boots in total",
    }[steer["act"]]
    return f"{steer['who']}: {act}" + (f" ({steer['why']})" if steer["why"] else "")


def _name(commits: Sequence[tuple[str, str]], idx: int) -> str:
    return f"{commits[idx][0][:12]} {commits[idx][1]}" if 0 <= idx < len(commits) else "unknown"


def _one_line(text: str) -> str:
    """Return the text on one line, so that untrusted text cannot start a new one."""
    return printable(text, " ")
