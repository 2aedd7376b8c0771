"""The wheel as a user has it: built from this checkout, installed in environments of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from tests.docker import program

ROOT = Path(__file__).resolve().parents[1]
PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def build(out: Path) -> Path:
    """The wheel as built by `make wheel`; constraints.txt is next to it."""
    subprocess.run(["sh", ROOT / ".ci" / "wheel", out, sys.executable], check=True, timeout=600)
    [wheel] = out.glob("swingbot-*-py3-none-any.whl")
    return wheel


def install(place: Path, wheel: Path, extras: Iterable[str] = ()) -> Path:
    """A virtual environment with the wheel and the locked packages that `extras` need; its bin/.

    What pip would install, and nothing more, hard-linked from this checkout's environment: in
    seconds, without a package index.
    """
    subprocess.run(["/usr/bin/python3", "-m", "venv", place], check=True, timeout=300)
    [source] = Path(sys.prefix).glob("lib/python3*/site-packages")
    [target] = place.glob("lib/python3*/site-packages")
    for name in _needed(extras):
        for file in distribution(name).files or ():
            path = Path(os.path.normpath(source / file))
            if path.is_relative_to(source) and path.is_file():
                _link(path, target / path.relative_to(source))
            elif path.parent == Path(sys.prefix, "bin") and path.is_file():
                _script(path, place / "bin" / path.name)
    pip = [str(place / "bin" / "python"), "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True, timeout=300)
    return place / "bin"


def _needed(extras: Iterable[str]) -> list[str]:
    """Names of the packages that the project and `extras` bring, by the lock."""
    locked = program("locked")
    lock = (ROOT / "requirements.lock").read_text()
    declared = locked.declared((ROOT / "pyproject.toml").read_text(), extras)
    return list(locked.blocks(locked.part(lock, declared)))


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        pass  # part of every virtual environment, or of two packages
    except OSError:  # another file system
        shutil.copy2(source, target)


def _script(source: Path, target: Path) -> None:
    """A console script, started by the Python of its new place."""
    if not target.exists():
        old, new = os.fsencode(source.parent), os.fsencode(target.parent)
        target.write_bytes(source.read_bytes().replace(old, new))
        target.chmod(0o755)


def environment(home: Path, **more: str) -> dict[str, str]:
    """Variables of a user who has nothing of this checkout: no PYTHONPATH, no .venv in PATH,
    no settings.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SWINGBOT_", "PYTHON", "VIRTUAL_ENV"))
    }
    return kept | {"PATH": PLAIN_PATH, "HOME": str(home)} | more


def run(program: Path, *words: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A program of an environment, started in a directory that is not the checkout."""
    return subprocess.run(
        [program, *words],
        cwd=cwd,
        env=environment(cwd, **more),
        capture_output=True,
        text=True,
        timeout=300,
    )
