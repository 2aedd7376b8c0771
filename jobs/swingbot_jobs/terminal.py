"""Printing for programs: control characters from outside never reach the terminal.

Names, subjects, logs and file names come from strangers. Every command prints through the streams
that `shown` puts in place of stdout and stderr, so that no command has to escape anything.
"""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TextIO, cast

import click

# C0 except tab and line feed, DEL, C1, bidirectional controls, lone surrogates (undecodable bytes)
_CONTROL: Final = (
    *(code for code in range(0x20) if chr(code) not in "\t\n"),
    *range(0x7F, 0xA0),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)
_VISIBLE: Final = {code: f"\\u{code:04x}" for code in _CONTROL}


def visible(text: str) -> str:
    r"""Replace each control character of `text` by its JSON escape, such as `\u001b`.

    Line feeds and tabs stay. A JSON document keeps its meaning.
    """
    return text.translate(_VISIBLE)


class VisibleStream:
    """A text stream without control characters.

    It has no attribute `buffer`, so that nothing bypasses it by chance; `write_as_is` does.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str | bytes) -> int:
        """Write `text`; click prints a completion script as bytes."""
        self._send(visible(text if isinstance(text, str) else text.decode()))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def write_as_is(self, text: str) -> None:
        """Write `text` to a file or pipe unchanged, to a terminal like `write`."""
        if self._stream.isatty():
            self.write(text)
        else:
            self._send(text)

    def _send(self, text: str) -> None:
        """Write to the stream; one that is ASCII by its locale gets UTF-8, as click does it."""
        buffer = getattr(self._stream, "buffer", None)
        if buffer is None or codecs.lookup(self._stream.encoding or "utf-8").name != "ascii":
            self._stream.write(text)
        else:
            self._stream.flush()
            buffer.write(text.encode("utf-8", "replace"))

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)


@contextmanager
def shown() -> Iterator[None]:
    """Let stdout and stderr show control characters instead of sending them.

    After an exception other than SystemExit they stay so, because Python still has to print it.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _over(sys.stdout), _over(sys.stderr)
    try:
        yield
    except SystemExit:
        sys.stdout, sys.stderr = before
        raise
    sys.stdout, sys.stderr = before


def _over(stream: TextIO) -> TextIO:
    if stream is None or isinstance(stream, VisibleStream):
        return stream
    stream.flush()
    return cast("TextIO", VisibleStream(stream))


class ShownGroup(click.Group):
    """A group of commands whose output shows control characters."""

    def main(self, *args: Any, **more: Any) -> Any:
        with shown():
            return super().main(*args, **more)


def print_as_is(text: str) -> None:
    """Print a document that has to keep every byte in a file or pipe, such as a mail."""
    if isinstance(sys.stdout, VisibleStream):
        sys.stdout.write_as_is(text)
        sys.stdout.flush()
    else:
        click.echo(text, nl=False)


def tell(line: str) -> None:
    """Print a line for people, beside the output."""
    click.echo(line, err=True)


def fail(status: int, message: str) -> NoReturn:
    """Print why the command ends, and exit with `status`."""
    tell(message)
    sys.exit(status)


def say_json(document: Any) -> None:
    """Print a document for programs."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
