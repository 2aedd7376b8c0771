"""Extras of the package (`swingbot[master]`): which of them are installed."""

from __future__ import annotations

import importlib.util
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

# A module of one required package of each extra.
PROBES: Final[Mapping[str, tuple[str, ...]]] = {
    "master": ("sqlalchemy", "psycopg2", "buildbot", "starlette"),
    "worker": ("buildbot_worker", "httpx", "elftools"),
}


def is_importable(module: str) -> bool:
    """Return whether a top-level module is installed, without importing it."""
    return importlib.util.find_spec(module) is not None


def missing(
    extras: Iterable[str], importable: Callable[[str], bool] = is_importable
) -> tuple[str, ...]:
    """Return those of `extras` that are not, or not fully, installed."""
    return tuple(extra for extra in extras if not all(map(importable, PROBES[extra])))


def advice(command: str, lacking: Iterable[str]) -> str:
    """Return one line: which extras a command lacks, and how to install them."""
    names = list(lacking)
    quoted = " and ".join(f'"{name}"' for name in names)
    return (
        f"{command} needs the extra{'s' if len(names) > 1 else ''} {quoted}:"
        f" {_installer()} 'swingbot[{','.join(names)}] @ {_origin()}'"
    )


def _installer() -> str:
    """Return the command that installs into a virtual environment: of pipx, which leaves it without
    pip, with the arguments that it was installed with; else of pip.
    """
    recorded = Path(sys.prefix, "pipx_metadata.json")
    if not recorded.is_file():
        return "pip install"
    arguments = json.loads(recorded.read_text())["main_package"]["pip_args"]
    given = ["--pip-args", shlex.join(arguments)] if arguments else []
    return shlex.join(["pipx", "install", "--force", *given])


def _origin() -> str:
    """Return the URL that the package was installed from.

    An index is never named: it might have a stranger's package of this name. pip records the URL
    in direct_url.json (PEP 610).
    """
    import importlib.metadata  # with the email package, which takes long to import

    package = importlib.metadata.distribution("swingbot")
    recorded = package.read_text("direct_url.json")
    wheel = f"file:///DIRECTORY/swingbot-{package.version}-py3-none-any.whl"
    return str(json.loads(recorded)["url"]) if recorded else wheel
