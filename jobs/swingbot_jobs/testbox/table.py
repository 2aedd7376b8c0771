"""The strict reader of a testbox file: errors name file, line and key."""

from __future__ import annotations

import re
from typing import Annotated, Final, NoReturn, TypeVar

from swingbot_jobs import codec
from swingbot_jobs.yaml_lines import LineError, LocatedValue, read_documents

T = TypeVar("T")
_PATH: Final = re.compile(r"(?!.*/\.\.(?:/|$))(?:/[A-Za-z0-9._+@:-]+)+/?")
# It is used in a shell script on the testbox.
AbsolutePath = Annotated[
    str,
    codec.matches(_PATH, "an absolute path of letters, digits, '/', '.', '_', '-', '+', '@', ':'"),
]
Seconds = Annotated[float, lambda s: None if 0 < s < 1e6 else f"{s:g} is not a number above 0"]


class TestboxError(LineError):
    """A testbox file is invalid; the message names file and line and says what to change."""

    __test__ = False  # not a pytest class, whatever its name begins with


def words(argv: tuple[str, ...]) -> str | None:
    return None if argv and all(argv) else "must be a list of words: no shell splits it"


def parse(text: str, file_name: str) -> LocatedValue:
    """Return the table of a file. Raises TestboxError."""
    documents = read_documents(text, file_name, TestboxError)
    if len(documents) != 1 or documents[0].table is None:
        raise TestboxError(f"{file_name}:1: a testbox file must be a table of 'key: value' lines")
    return documents[0]


def read(kind: type[T], table: LocatedValue, where: str = "") -> T:
    """Return the table at the key `where` as `kind`. Raises TestboxError."""
    try:
        return codec.typed(kind, table, where)
    except codec.BadDocument as error:
        raise TestboxError(str(error)) from None


def refuse(table: LocatedValue, why: str, *path: str) -> NoReturn:
    """Raise TestboxError for the value at `path`, with its line."""
    for key in path:
        table = (table.table or {}).get(key, table)
    raise TestboxError(f"{table.where}: {why}")
