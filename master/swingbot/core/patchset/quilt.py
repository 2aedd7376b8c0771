"""Parse the `series` file of a quilt directory: names of patches in the order they apply."""

from __future__ import annotations

from swingbot.core import limits
from swingbot.core.patchset.mailbox import refuse_binary
from swingbot.core.patchset.model import SeriesError
from swingbot.core.text.plain import cut


def parse_series_file(data: bytes) -> list[str]:
    """Return names of patches, relative to the directory.

    `#` begins a comment. Patches are applied forwards with `-p1`; any other option is refused.
    Raises SeriesError that names the line.
    """
    refuse_binary(data)
    lines = data.split(b"\n", limits.QUILT_LINES)
    if len(lines) > limits.QUILT_LINES:
        raise SeriesError(f"it has more than {limits.QUILT_LINES} lines")
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        words = _words(line.decode("utf-8", "replace"))
        if words:
            names.append(_name(number, words))
        if len(names) > limits.SERIES_PATCHES:
            raise SeriesError(f"it names more than {limits.SERIES_PATCHES} patches")
    if not names:
        raise SeriesError("it names no patches")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SeriesError(f"it names {cut(twice, 100)} twice")
    return names


def _words(line: str) -> list[str]:
    words = line.split()
    comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
    return words[:comment]


def _name(number: int, words: list[str]) -> str:
    name, *options = words
    if options not in ([], ["-p1"], ["-p", "1"]):
        raise SeriesError(
            f"line {number}: {cut(name, 100)} has the options {cut(' '.join(options), 60)!r};"
            " only -p1 is supported, which `quilt refresh -p1` writes"
        )
    if name.startswith("/") or ".." in name.split("/") or "\ufffd" in name:
        raise SeriesError(f"line {number}: {cut(name, 100)!r} is not a path within the directory")
    return name
