"""Make the main thread of a Python process spin, as an endless computation would."""

from __future__ import annotations

import os
import signal
from pathlib import Path

SPIN = signal.SIGUSR1

_SITE = """\
import signal


def spin(number, frame):
    while True:
        pass


signal.signal(signal.SIGUSR1, spin)
"""


def can_be_stuck(root: Path) -> dict[str, str]:
    """Environment with which each Python process spins once it gets the signal SPIN."""
    place = root / "stuck"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(_SITE)
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{place}{os.pathsep}{before}" if before else str(place)}
