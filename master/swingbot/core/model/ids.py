"""Ids as shown to people: a letter and a number (`t1`, `v3`, `o12`, `a12`, `c5`, `e6`, `b2`)."""

from __future__ import annotations

import re
from typing import Final

from swingbot.core.model.statuses import ComparisonKind

LETTERS: Final = {
    "tree": "t",
    "variant": "v",
    "order": "o",
    "attempt": "a",
    "dispatch": "d",
    "comparison": "c",
    "experiment": "e",  # shares its numbers with comparisons: there is either a c5 or an e5
    "bisection": "b",
    "incident": "i",
    "report": "r",
    "boot": "x",
}
TABLES: Final = ("comparison", "experiment")  # kinds of ids of tables
REQUESTS: Final = (*TABLES, "bisection")  # that one asks for, waits for and cancels
WITH_NUMBERS: Final = (*REQUESTS, "incident", "report")  # that have a table of numbers
KINDS: Final = {letter: kind for kind, letter in LETTERS.items()}
_ID = re.compile(r"([a-z])([0-9]{1,18})")


class BadId(ValueError):
    """The input is not a valid id; the message shows the expected form."""


def show(kind: str, number: int) -> str:
    """Format an id: `show("comparison", 5)` is `c5`."""
    return f"{LETTERS[kind]}{number}"


def of_table(kind: ComparisonKind, number: int) -> str:
    """Format the id of a table: what it was requested as decides its letter, and nothing else."""
    return show("experiment" if kind == "experiment" else "comparison", number)


def read(text: str, kind: str | None = None) -> tuple[str, int]:
    """Parse an id: `read("c5")` is `("comparison", 5)`.

    Raises BadId for a malformed id, or one of another kind than `kind`.
    """
    match = _ID.fullmatch(text.strip())
    if match is None or match[1] not in KINDS:
        raise BadId(
            f"{text[:40]!r} is not an id: ids are a letter and a number,"
            " such as c5 (comparison) or b2 (bisection)"
        )
    matched_kind = KINDS[match[1]]
    if kind is not None and matched_kind != kind:
        raise BadId(
            f"{text!r} is the id of {_a(matched_kind)}; {_a(kind)} has an id such as"
            f" {LETTERS[kind]}5"
        )
    return matched_kind, int(match[2])


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"
