"""A signal that arrives while a process is started is handled, and only then."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

_START = """
import os, signal, sys
from pathlib import Path
from swingbot.app import process
from swingbot.app.bisect_run import process as of_command

def handle(number, frame):
    raise SystemExit(7)

number, folder = signal.Signals[sys.argv[1]], Path(sys.argv[2])
signal.signal(number, handle)
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(number))
if sys.argv[3] == "command":
    of_command.start(["true"], env={}, cwd=None, out=folder / "out", err=folder / "err")
else:
    process.start(["true"], env={}, cwd=folder, log=folder / "log")
print("the signal was lost")
"""


@pytest.mark.parametrize("started", ["command", "service"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_hooks_around_fork_reaches_its_handler(
    tmp_path: Path, number: signal.Signals, started: str
) -> None:
    argv = [sys.executable, "-c", _START, number.name, str(tmp_path), started]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
