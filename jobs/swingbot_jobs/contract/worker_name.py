"""Names of Buildbot workers that drive testboxes: `testbox-` and the testbox's name."""

from __future__ import annotations

from typing import Final

TESTBOX: Final = "testbox-"


def of_testbox(testbox: str) -> str:
    """Name of the worker that drives the testbox `testbox`."""
    return f"{TESTBOX}{testbox}"


def drives_testbox(name: str) -> bool:
    return name.startswith(TESTBOX)
