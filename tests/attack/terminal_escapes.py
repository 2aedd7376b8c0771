"""What a stranger wrote reaches the operator's terminal with its control characters."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.attack.target import Result, Target

NAME: Final = "terminal-escapes"
WANTED: Final = "no control character on the terminal, whoever prints"
ESCAPES: Final = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e"
COMMANDS: Final = (
    ("swingbot.app.cli", "parse", "perf-stat", "FILE"),
    ("swingbot_worker.cli", "bloat", "FILE", "FILE"),
)


def run(target: Target) -> Result:
    """Let commands print an error about a file of such a name."""
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        file = Path(directory) / ESCAPES
        file.write_text(ESCAPES)
        printed = [
            _on_a_terminal(
                [sys.executable, "-m", *(str(file) if word == "FILE" else word for word in command)]
            )
            for command in COMMANDS
        ]
    loose = [text for text in printed if b"\x1b" in text or b"\x07" in text or b"\xc2\x9b" in text]
    silent = sum(b"title" not in text for text in printed)
    return Result(
        held=not loose and not silent,
        line=f"{len(printed)} commands, {len(loose)} of them send escapes, {silent} print nothing",
    )


def _on_a_terminal(argv: list[str]) -> bytes:
    """Return what `argv` prints on a terminal of its own."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = b""
        with suppress(OSError):  # the terminal has ended with its last process
            while chunk := os.read(ours, 1 << 16):
                text += chunk
        os.close(ours)
        process.wait(60)
    return text
