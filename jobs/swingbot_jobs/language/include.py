"""`<<: other.yaml`: job files that include other files, before YAML is parsed.

An include replaces its line with text, as in LKP: later lines of the file may set a key again,
and a file of several documents includes all of them.
`<<: {file: base.yaml, disk: 1SSD, ignore: [mode]}` sets top-level keys in every document of the
included file, and removes those of `ignore`. The resulting text needs no other file; its `#line`
marks keep the positions for messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from swingbot_jobs import limits
from swingbot_jobs.yaml_lines import JobError, LineOrigins, line_mark

# (included file, including file) -> (name, text), or None if it does not exist.
# Messages show these names.
Find = Callable[[str, str], tuple[str, str] | None]

_INCLUDE: Final = re.compile(r"( *)<< *: +([^*\[\s].*)")
_TOP_KEY: Final = re.compile(r"""(["']?)([^\s"'#:-][^"':]{0,200})\1\s*:(?:\s|$)""")
_NAME: Final = re.compile(r'[^"\x00-\x1f\x7f]{1,255}')


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One `<<:` line: the file, top-level keys to set with their text, keys to leave out."""

    file: str
    overrides: Mapping[str, str]
    ignored: frozenset[str]


def include(text: str, file_name: str, find: Find) -> str:
    """Return `text` with its includes expanded. Raises JobError with file and line."""
    return "\n".join(_included(text, file_name, find, (file_name,)))


def _included(text: str, name: str, find: Find, inside: tuple[str, ...]) -> Iterator[str]:
    places = LineOrigins.of(text, name)
    budget = limits.YAML_CHARACTERS
    for number, line in enumerate(text.split("\n")):
        wanted = _INCLUDE.fullmatch(line)
        if not wanted:
            yield line
            continue
        where, indent = places.where(number), wanted[1]
        for pasted in _pasted(_parsed(wanted[2], where), where, find, inside):
            budget -= len(pasted)
            if budget < 0:
                raise JobError(
                    f"{where}: with what it includes, the job has more than"
                    f" {limits.YAML_CHARACTERS}"
                    " characters"
                )
            if indent and pasted.startswith("---"):
                raise JobError(
                    f"{where}: a file of several documents can only be included at the top level"
                )
            yield indent + pasted
        yield line_mark(*places.at(number), after=1, indent=indent)


def _parsed(written: str, where: str) -> _Wanted:
    """Parse a `<<:` line: a file name, or `{file: NAME, key: value, ignore: [key]}`."""
    usage = (
        f"{where}: '<<' takes a file name, or {{file: NAME, KEY: VALUE, ignore: [KEY]}} in one line"
    )
    try:
        node = yaml.compose(written, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise JobError(usage) from error
    if isinstance(node, yaml.ScalarNode):
        return _Wanted(str(node.value), {}, frozenset())
    if not isinstance(node, yaml.MappingNode):
        raise JobError(usage)
    entries = {str(key.value): value for key, value in node.value}
    file, ignored = entries.pop("file", None), entries.pop("ignore", None)
    if not isinstance(file, yaml.ScalarNode):
        raise JobError(usage)
    keys = ignored.value if isinstance(ignored, yaml.SequenceNode) else [ignored] if ignored else []
    overrides = {
        key: written[value.start_mark.index : value.end_mark.index].strip()
        for key, value in entries.items()
    }
    return _Wanted(str(file.value), overrides, frozenset(str(key.value) for key in keys))


def _pasted(wanted: _Wanted, where: str, find: Find, inside: tuple[str, ...]) -> Iterator[str]:
    if len(inside) > limits.INCLUDE_DEPTH:
        raise JobError(f"{where}: files include each other more than {limits.INCLUDE_DEPTH} deep")
    included = find(wanted.file, inside[-1])
    if included is None:
        raise JobError(
            f"{where}: the file {wanted.file!r} that is included here does not exist,"
            " neither in the directory of this file nor among the other jobs"
        )
    name, text = included
    if name in inside:
        raise JobError(
            f"{where}: {name} includes itself ({' in '.join([name, *reversed(inside)])})"
        )
    if not _NAME.fullmatch(name):
        raise JobError(f"{where}: the file's name {name!r} can't be used here")
    yield line_mark(name, 1)
    if len(text) > limits.YAML_CHARACTERS:
        raise JobError(
            f"{name}:1: the file has {len(text)} characters, more than {limits.YAML_CHARACTERS}"
        )
    yield from _revised(list(_included(text, name, find, (*inside, name))), name, wanted, where)


def _revised(lines: list[str], name: str, wanted: _Wanted, where: str) -> Iterator[str]:
    """Return an included text without its `ignore` keys and with the overrides in every document.

    An override replaces its key, or else goes to the end of the document.
    """
    if not wanted.overrides and not wanted.ignored:
        yield from lines
        return
    file, _, line = where.rpartition(":")
    places = LineOrigins.of("\n".join(lines), name)
    due, leaving, blank = dict(wanted.overrides), False, True
    for number, text in enumerate([*lines, "---"]):
        if re.match(r"---(\s|$)", text):
            if not blank:
                yield from _settings(due, file, int(line))
            due, leaving, blank = dict(wanted.overrides), False, True
            if number < len(lines):
                yield text
                yield line_mark(*places.at(number), after=1)
            continue
        key = _TOP_KEY.match(text)
        if key:
            blank = False
            leaving = key[2] in wanted.ignored or key[2] in wanted.overrides
            if key[2] in due:
                yield from _settings({key[2]: due.pop(key[2])}, file, int(line))
            if not leaving:
                yield line_mark(*places.at(number))
        if not leaving:
            yield text


def _settings(overrides: Mapping[str, str], file: str, line: int) -> Iterator[str]:
    for key, value in overrides.items():
        yield line_mark(file, line)
        yield f"{key}: {value}"
