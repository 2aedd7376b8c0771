"""What somebody who mistyped a name may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import takewhile
from typing import Final

_CHARACTERS: Final = 120  # of a name that is compared; the comparison takes the square of them


def instead_of(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about a name that does not exist: which one may be meant, and
    all that exist.
    """
    names = sorted(set(known))
    if not names:
        return "there are none yet"
    return f"{meant_by(name, names)}choose from {', '.join(names)}"


def meant_by(name: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'? `, or "" if no known name is close.

    An end that all names have, such as `.yaml`, makes none of them close.
    """
    if len(name) > _CHARACTERS:
        return ""
    short = [one for one in known if len(one) <= _CHARACTERS]
    last = zip(*(one.lower()[::-1] for one in (name, *short)), strict=False)
    end = len(list(takewhile(lambda letters: len(set(letters)) == 1, last)))
    names = {one.lower()[: len(one) - end]: one for one in short}
    close = get_close_matches(name.lower()[: len(name) - end], names, n=2, cutoff=0.7)
    return f"did you mean {' or '.join(repr(names[one]) for one in close)}? " if close else ""
