"""Programs show control characters; they do not send them to a terminal, file or pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Final

import pytest

from swingbot_jobs.terminal import visible

ROOT: Final = Path(__file__).parents[2]
HOSTILE: Final = "\x1b[31m\x9b2J\x07\x7f\u202e\u2066\r x\u00e9"
SHOWN: Final = r"\u001b[31m\u009b2J\u0007\u007f\u202e\u2066\u000d x" + "\u00e9"
BIDIRECTIONAL: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
PROGRAMS: Final = {
    "swingbot": ["swingbot.app.cli", "stats", "compare", HOSTILE],
    "swingbot-worker": ["swingbot_worker.entry", "build", "--out", "/nowhere", HOSTILE],
}
FAILS: Final = """
import click
from swingbot_jobs.terminal import ShownGroup, print_as_is
@click.group(cls=ShownGroup)
def main(): pass
@main.command()
def fail(): raise RuntimeError({0!r})
@main.command()
def mail(): print_as_is({0!r})
main()
"""


def on_a_terminal(argv: list[str], **environment: str) -> str:
    """What a terminal receives on stdout and stderr of a program."""
    ours, its = pty.openpty()
    child = subprocess.Popen(
        argv, stdin=its, stdout=its, stderr=its, env=os.environ | environment, cwd=ROOT
    )
    os.close(its)
    received = b""
    try:
        while piece := os.read(ours, 4096):
            received += piece
    except OSError:  # how Linux reports that the other end is closed
        pass
    finally:
        os.close(ours)
        child.wait(60)
    return received.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_that_completes_in_a_shell_is_printed_and_completes(shell: str) -> None:
    def swingbot(**environment: str) -> str:
        argv = [
            sys.executable,
            "-c",
            "from swingbot.app.cli import main; main(prog_name='swingbot')",
        ]
        env = os.environ | environment
        return subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout

    assert "_SWINGBOT_COMPLETE" in swingbot(_SWINGBOT_COMPLETE=f"{shell}_source")
    typed = {"COMP_WORDS": "swingbot canc", "COMP_CWORD": "1" if shell != "fish" else "canc"}
    assert "cancel" in swingbot(_SWINGBOT_COMPLETE=f"{shell}_complete", **typed)


def controls(text: str) -> list[str]:
    return [
        char
        for char in text
        if char in BIDIRECTIONAL
        or (unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t")
    ]


def test_every_control_character_becomes_visible_and_nothing_else_changes() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    shown = visible(everything)
    found = set(controls(everything))
    assert len(found) > 64 and not controls(shown)
    assert json.loads(json.dumps(visible(HOSTILE))) == SHOWN
    kept = "".join(char for char in everything if char not in found)
    unchanged = visible(kept) == kept
    assert unchanged  # pytest would compare a million characters
    assert json.loads(visible(json.dumps([HOSTILE], ensure_ascii=False))) == [HOSTILE]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_terminal_receives_no_escape_from_a_program(program: str, encoding: str) -> None:
    received = on_a_terminal([sys.executable, "-m", *PROGRAMS[program]], PYTHONIOENCODING=encoding)
    assert SHOWN in received and not controls(received)


def test_a_traceback_that_quotes_hostile_text_is_shown_too() -> None:
    received = on_a_terminal([sys.executable, "-c", FAILS.format(HOSTILE), "fail"])
    assert f"RuntimeError: {SHOWN}" in received and not controls(received)


def test_a_mail_keeps_its_bytes_in_a_pipe_and_is_shown_on_a_terminal() -> None:
    argv = [sys.executable, "-c", FAILS.format(HOSTILE), "mail"]
    piped = subprocess.run(argv, capture_output=True, check=True, cwd=ROOT)
    assert piped.stdout.decode() == HOSTILE
    assert on_a_terminal(argv) == SHOWN


def test_no_command_writes_around_the_stream() -> None:
    around = re.compile(r"(stdout|stderr)\.buffer|__std(out|err)__|os\.write\([12],|fdopen\([12]\b")
    for package in ("master/swingbot/app", "workers/swingbot_worker"):
        for file in (ROOT / package).rglob("*.py"):
            assert not around.search(file.read_text()), file
