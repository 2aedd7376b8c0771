"""Make the main thread of a Python process spin, as an endless computation would."""

from __future__ import annotations

import os
import signal
from pathlib import Path

SPIN = signal.SIGUSR1

# While it waits for a statement or a child it is not stuck, so the signal is tried again.
_SITE = """\
import signal

WAITS = ("sqlalchemy", "subprocess")


def spin(number, frame):
    inner = frame
    while inner is not None:
        if inner.f_globals.get("__name__", "").startswith(WAITS):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        inner = inner.f_back
    while True:
        pass


for number in (signal.SIGUSR1, signal.SIGALRM):
    signal.signal(number, spin)
"""


def can_be_stuck(root: Path) -> dict[str, str]:
    """Environment with which each Python process spins once it gets the signal SPIN."""
    place = root / "stuck"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(_SITE)
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{place}{os.pathsep}{before}" if before else str(place)}
