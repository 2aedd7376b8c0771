"""Directory names for the kernels of a table, whose own names may contain anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

_OTHER: Final = re.compile(r"[^A-Za-z0-9._+]+")
_LONGEST: Final = 60  # characters, not counting the number
_EMPTY: Final = "kernel"  # for a name without usable characters


def directory_names(names: Sequence[str]) -> list[str]:
    """Return a directory name for each of `names`, in order.

    Each consists of ASCII letters, digits and `._+-`, begins with a letter or digit, has no `..`,
    and differs from all others in more than upper and lower case. The same names give the same
    result.
    """
    taken: set[str] = set()
    chosen = []
    for name in names:
        plain = _plain(name)
        candidate, number = plain, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{plain}-{number}"
        taken.add(candidate.lower())
        chosen.append(candidate)
    return chosen


def _plain(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub(r"\.{2,}", ".", _OTHER.sub("-", decomposed)).strip("-._+")
    return words[:_LONGEST].rstrip("-._+") or _EMPTY
