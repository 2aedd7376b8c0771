"""The error of all lookups, and its sentence."""

from __future__ import annotations

from typing import Final

from swingbot.core.model import ids

# Kinds with an id that `swingbot list` lists.
LISTED: Final = ("comparison", "experiment", "bisection", "incident", "order", "report")


class NotFound(LookupError):
    """The requested id or name does not exist; the message is one sentence for the requester."""


def missing(kind: str, number: int) -> str:
    """Return the sentence that comparison `number` (or another `kind`) does not exist.

    It names the command that lists what exists, if the kind has a list.
    """
    sentence = f"{kind} {ids.show(kind, number)} does not exist"
    if kind not in LISTED:
        return sentence
    return f"{sentence}; `swingbot list {kind}s` lists all {kind}s"
