"""The result of swingbot's own programs: one line of `key=value` words on stdout."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from swingbot_jobs.reading.result import ParseError

_CHARACTERS: Final = 500  # of a line; longer ones are no result


def result_line(program: str, line: re.Pattern[str], files: Mapping[str, str]) -> re.Match[str]:
    """Return the match of the only line of a run's stdout that is all of `line`.

    Raises ParseError with another number of such lines.
    """
    found = [
        match
        for text in files.get("stdout", "").splitlines()
        if (match := line.fullmatch(text.strip()[:_CHARACTERS]))
    ]
    if len(found) != 1:
        raise ParseError(f"{program} printed {len(found)} result lines, expected one")
    return found[0]
