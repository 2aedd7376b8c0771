"""A git that runs a script before the real one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def git_shim(place: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put it first in PATH; it lies in `place`."""
    shim = place / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\n{script}\nexec '{shutil.which('git')}' \"$@\"\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent), prepend=os.pathsep)
