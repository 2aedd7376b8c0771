"""Names of Buildbot workers that drive testboxes: `testbox-` and the testbox's name.

The former prefix `box-` still works: a worker that is started with it logs in under the current
name, and the master accepts a worker of an earlier release under its former name.
"""

from __future__ import annotations

from typing import Final

TESTBOX: Final = "testbox-"
FORMER_TESTBOX: Final = "box-"


def of_testbox(testbox: str) -> str:
    """Name of the worker that drives the testbox `testbox`."""
    return f"{TESTBOX}{testbox}"


def former(name: str) -> str | None:
    """Former name of the testbox worker `name`; None for a build worker."""
    return f"{FORMER_TESTBOX}{name.removeprefix(TESTBOX)}" if name.startswith(TESTBOX) else None


def current(name: str) -> str:
    """Current name of the worker `name`."""
    return of_testbox(name.removeprefix(FORMER_TESTBOX)) if is_former(name) else name


def is_former(name: str) -> bool:
    return name.startswith(FORMER_TESTBOX)


def drives_testbox(name: str) -> bool:
    return name.startswith((TESTBOX, FORMER_TESTBOX))
