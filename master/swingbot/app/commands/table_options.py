"""Options of a table of kernels, as the command line or a YAML file gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from swingbot.app import limits
from swingbot.core.limits import LAYOUTS, LOOKS, TABLE_BOOTS
from swingbot.core.report.table.columns import COLUMNS
from swingbot.service.ports import RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a request, under one name on the command line and in a file."""

    help: str
    metavar: str | None = None
    several: bool = False  # it may be repeated; in a file it may be a list or {NAME: VALUE}
    listed: bool = False  # values may be joined with commas
    most: int | None = None  # of a number, from 1
    percent: bool = False
    flag: bool = False
    path: bool = False  # of files, which a file names relative to itself


OPTIONS: Final[Mapping[str, Option]] = {
    "base": Option(help="Kernel that the others are based on; the first row.", metavar="REF"),
    "head": Option(help="Add a commit, tag or branch as a row.", metavar="REF", several=True),
    "variant": Option(
        help="Add a named row: patches on the base, or a commit.",
        metavar="NAME=FILE[,FILE]|REF",
        several=True,
        path=True,
    ),
    "series": Option(
        help="Add a row for each patch on the base: mbox (also from b4), quilt, or a directory.",
        metavar="[NAME=]FILE|DIR",
        several=True,
        path=True,
    ),
    "patch": Option(
        help="Apply patches to the last kernel named: file, mbox, quilt or directory.",
        metavar="FILE|DIR",
        several=True,
        path=True,
    ),
    "paths": Option(
        help="Restrict the range to commits that touch GLOB.", metavar="GLOB", several=True
    ),
    "compiler": Option(
        help="Add rows per compiler: gcc-12, clang-19.", metavar="[NAME=]CC", several=True
    ),
    "kconfig": Option(
        help="Add rows per kernel configuration, with the tree's fragments on top, in place of"
        " that of the testbox; an empty value is the usual one.",
        metavar="[NAME=]CONFIG",
        several=True,
    ),
    "fragment": Option(
        help="Add rows per kconfig fragment.", metavar="NAME=FRAGMENT", several=True
    ),
    "layout": Option(
        help="Add rows per link order of the same objects, which moves the code: 0 (as usual) to"
        f" {LAYOUTS}. What differs between them alone becomes part of the noise record.",
        metavar="[NAME=]N",
        several=True,
    ),
    "cmdline": Option(help="Add rows per command line.", metavar="NAME=WORDS", several=True),
    "sysctl": Option(help="Add rows per sysctl setting.", metavar="NAME=KEY=VALUE", several=True),
    "exclude": Option(help="Omit a combination.", metavar="AXIS=NAME[,...]", several=True),
    "against": Option(
        help="Reference of each row: above, first, base, pair (base and head under the same"
        " conditions), or the name of a row.",
        metavar="RULE|ROW[,...]",
        several=True,
        listed=True,
    ),
    "with": Option(
        help=f"Columns beside the numbers: {', '.join(COLUMNS)}, or the name of a metric.",
        metavar="COLUMN[,...]",
        several=True,
        listed=True,
    ),
    "tree": Option(
        help="Tree of the commits (default: the only tree that contains them).", metavar="NAME"
    ),
    "job": Option(
        help="Job file: a path or the name of a shipped job (default: the tree's jobs).",
        metavar="FILE",
        several=True,
        path=True,
    ),
    "set": Option(help="Override a key of the job file.", metavar="KEY=VALUE", several=True),
    "testbox": Option(
        help="Testboxes to use (default: the tree's).",
        metavar="ID|GROUP[,...]",
        several=True,
        listed=True,
    ),
    "boots": Option(help="Boots per row.", metavar="N", most=TABLE_BOOTS),
    "min-effect": Option(
        help="Smallest change of interest in percent, of the benchmarks' metrics (default: the"
        " tree's, or each program's).",
        metavar="PCT",
        percent=True,
    ),
    "looks": Option(
        help="How often the table may be judged, counting each later `extend` (default: 1). Each"
        " look is made at an N-th of the error rate.",
        metavar="N",
        most=LOOKS,
    ),
    "private-to": Option(
        help="Keep the table and its new kernels private until `swingbot publish`: only you, the"
        " people named and operators can read them. `me` adds nobody.",
        metavar="me|NAME[,...]",
        several=True,
        listed=True,
    ),
    "mail": Option(
        help="Send a mail when the table is over: to the address of your token, on the service's"
        " own host to the operator.",
        flag=True,
    ),
    "trusted": Option(
        help="Treat the patches as trusted: build and boot them like the tree itself.", flag=True
    ),
}
_FILE_KEYS: Final = ("range", *OPTIONS)
_RANGE: Final = Option(help="", metavar="A..B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A value of an option. `file` says where a file has it: `sweep.yaml:7`."""

    key: str
    text: str
    file: str | None = None

    @property
    def source(self) -> str:
        return f"--{self.key}" if self.file is None else f"{self.file}: {self.key}"

    def wrong(self, why: str) -> RequestError:
        return RequestError(f"{self.source} {self.text}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The values of all options, in the order in which they were given."""

    given: tuple[Given, ...] = ()

    def all(self, *keys: str) -> list[Given]:
        return [one for one in self.given if one.key in keys]

    def texts(self, key: str) -> list[str]:
        return [one.text for one in self.all(key)]

    def last(self, key: str) -> str | None:
        return next(reversed(self.texts(key)), None)

    def number(self, key: str) -> int | None:
        text = self.last(key)
        return None if text is None else int(text)

    def percent(self, key: str) -> float | None:
        text = self.last(key)
        return None if text is None else float(text)

    def located(self, error: RequestError) -> RequestError:
        """Return the error with file and line of what it is about, if a file was read."""
        files = [one for one in self.given if one.file is not None]
        if not files or any(one.source in str(error) for one in files):
            return error
        about = (one for one in files if error.key in (one.key, one.text.partition("=")[0]))
        whole = (files[0].file or "").rpartition(":")[0]
        return RequestError(f"{next((one.source for one in about), whole)}: {error}")


def split(given: Given) -> Iterator[Given]:
    """Return the values that commas join, of an option that allows it."""
    texts = given.text.split(",") if OPTIONS[given.key].listed else [given.text]
    return (Given(key=given.key, text=text, file=given.file) for text in texts if text)


def read_file(path: Path) -> Options:
    """Read a request from a YAML file. Raises RequestError that names file, line and key."""
    with path.open("rb") as file:
        content = file.read(limits.TABLE_FILE_BYTES + 1)
    if len(content) > limits.TABLE_FILE_BYTES:
        raise RequestError(
            f"{path} is larger than {limits.TABLE_FILE_BYTES >> 10} KiB, the limit for a table"
        )
    try:
        loader = yaml.SafeLoader(content)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise RequestError(f"{path}: a table is a mapping; its keys are {_keys()}")
        return Options(given=tuple(_Reader(path, loader).options(node)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = path if mark is None else f"{path}:{mark.line + 1}"
        why = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RequestError(f"{where}: not valid YAML: {why}") from None
    except RecursionError:
        raise RequestError(f"{path}: not valid YAML: nested too deeply") from None


def _keys() -> str:
    return ", ".join(_FILE_KEYS)


class _Reader:
    """Reads the values of a file, each with its line."""

    def __init__(self, path: Path, loader: yaml.SafeLoader) -> None:
        self._path, self._loader = path, loader

    def options(self, node: yaml.MappingNode) -> Iterator[Given]:
        seen = set()
        for key_node, value in node.value:
            key, line = self._plain(key_node), self._line(key_node)
            if key not in _FILE_KEYS:
                raise RequestError(f"{line}: unknown key {str(key)[:80]!r}; keys are {_keys()}")
            if key in seen:
                raise RequestError(f"{line}: {key} occurs twice")
            seen.add(key)
            yield from self._values(key, OPTIONS.get(key, _RANGE), value)

    def _values(self, key: str, option: Option, node: yaml.Node) -> Iterator[Given]:
        if option.several:
            for given in self._texts(key, node):
                yield from split(self._placed(given) if option.path else given)
            return
        value = self._plain(node)
        if option.flag:
            if type(value) is not bool:
                raise self._wrong(key, node, "must be true or false")
            if value:
                yield self._given(key, node, "true")
        elif option.most is not None:
            if type(value) is not int or not 1 <= value <= option.most:
                raise self._wrong(key, node, f"must be an integer from 1 to {option.most}")
            yield self._given(key, node, str(value))
        elif option.percent:
            if type(value) not in (int, float):
                raise self._wrong(key, node, "must be a number of percent, such as 0.5")
            yield self._given(key, node, str(value))
        elif isinstance(value, str):
            yield self._given(key, node, value)
        else:
            raise self._wrong(key, node, "must be a single string")

    def _texts(self, key: str, node: yaml.Node) -> Iterator[Given]:
        if isinstance(node, yaml.SequenceNode):
            for one in node.value:
                yield from self._texts(key, one)
        elif isinstance(node, yaml.MappingNode):
            pairs = [
                self._given(key, name, f"{self._plain(name)}={self._text(key, value)}")
                for name, value in node.value
            ]
            if key == "exclude" and pairs:
                yield self._given(key, node, ",".join(pair.text for pair in pairs))
            else:
                yield from pairs
        else:
            yield self._given(key, node, self._text(key, node))

    def _text(self, key: str, node: yaml.Node) -> str:
        value = self._plain(node)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return ",".join(value)
        if value is None:
            return ""
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
        raise self._wrong(key, node, f"{str(value)[:80]!r} is not a string")

    def _plain(self, node: yaml.Node) -> Any:
        try:
            return self._loader.construct_object(node, deep=True)
        except ValueError as error:  # such as a date that does not exist
            raise RequestError(f"{self._line(node)}: {error}") from None

    def _line(self, node: yaml.Node) -> str:
        return f"{self._path}:{node.start_mark.line + 1}"

    def _given(self, key: str, node: yaml.Node, text: str) -> Given:
        return Given(key=key, text=text, file=self._line(node))

    def _wrong(self, key: str, node: yaml.Node, why: str) -> RequestError:
        return RequestError(f"{self._line(node)}: {key} {why}")

    def _placed(self, given: Given) -> Given:
        """Return a value with its files relative to the file that names them."""
        name, sign, value = given.text.rpartition("=")
        files = [self._path.parent / one for one in value.split(",")]
        if not all(file.exists() for file in files):
            return given
        placed = f"{name}{sign}{','.join(map(str, files))}"
        return Given(key=given.key, text=placed, file=given.file)


def in_order(order: Sequence[str], values: Mapping[str, Any]) -> Options:
    """Return the options of a command line. `order` names its parameters as they occurred, each as
    often as it did.
    """
    left = {
        key: iter(value if isinstance(value, tuple) else (value,))
        for name, value in values.items()
        if (key := name.replace("_", "-")) in OPTIONS and value not in (None, False)
    }
    keys = [name.replace("_", "-") for name in order]
    given = [Given(key=key, text=str(next(left[key]))) for key in keys if key in left]
    return Options(given=tuple(one for whole in given for one in split(whole)))
