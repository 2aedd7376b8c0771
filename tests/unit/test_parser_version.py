"""Rules of a parser's version: it covers every module of swingbot that can change a sample."""

from __future__ import annotations

from pathlib import Path

import pytest

import swingbot_jobs
from swingbot.adapters.parser_version import imported

READING = Path(swingbot_jobs.__file__).parent / "reading"


@pytest.mark.parametrize(
    "line",
    [
        "import swingbot_jobs.reading.snapshots",
        "from swingbot_jobs.reading import snapshots",
        "from swingbot_jobs.reading.snapshots import read",
        "def parse():\n    from swingbot_jobs.reading import result, snapshots",
    ],
)
def test_an_imported_module_is_found_however_it_is_imported(line: str) -> None:
    assert READING / "snapshots.py" in set(imported(line))


@pytest.mark.parametrize("line", ["import json", "from . import snapshots", "def parse(:", "\0"])
def test_other_imports_and_broken_files_name_no_module(line: str) -> None:
    assert not list(imported(line))
