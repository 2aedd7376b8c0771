"""Whether Ruby can run lkp-tests here."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from typing import Final

from tests.demo.process import attempt

# What lkp-tests loads -> the Debian package that has it.
LIBRARIES: Final[Mapping[str, str]] = {
    "active_support": "ruby-activesupport",
    "git": "ruby-git",
    "tty-command": "ruby-tty-command",
}


@cache
def missing() -> str | None:
    """What lkp-tests lacks on this host and how to install it, in one sentence; None if nothing."""
    if shutil.which("ruby") is None:
        lacking = "Ruby is not installed"
    else:
        absent = [name for name in LIBRARIES if attempt(["ruby", "-e", f"require '{name}'"])[0]]
        if not absent:
            return None
        lacking = f"Ruby lacks {', '.join(absent)}"
    return f"{lacking}; install Debian's {' '.join(['ruby', *LIBRARIES.values()])}"
