"""Read a git repository that somebody else controls, without obeying its configuration.

A repository's own configuration names programs that git runs (hooks, monitors, filters, the other
side of a partial clone), and its owner may be anybody. git therefore never runs in such a
repository, but in a bare one that swingbot makes, with a configuration of swingbot:

    config, HEAD                written here
    refs, packed-refs, shallow  links to those of the repository
    objects/info/alternates     the repository's objects

Objects that the repository does not have, as in a partial clone, are missing: nothing is fetched.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from swingbot_jobs import limits

# The owner may write graphs and indexes that contradict the objects, so git reads the objects.
_CONFIG: Final = """\
[core]
\trepositoryFormatVersion = 0
\tbare = true
\tcommitGraph = false
\tmultiPackIndex = false
\thooksPath = /dev/null
\tfsmonitor = false
\tattributesFile = /dev/null
\tuseReplaceRefs = false
[gc]
\tauto = 0
[log]
\tshowSignature = false
"""
_LINKS: Final = ("refs", "packed-refs", "shallow")
_HEAD: Final = re.compile(r"ref: refs/[^\x00-\x20\x7f]{1,1000}|[0-9a-f]{40}")
_NOWHERE: Final = "ref: refs/heads/none"


class NotARepository(Exception):
    """There is no git repository at this path; the message says so."""


class GitDirectories(NamedTuple):
    """`own` has HEAD, `common` has refs and objects; they differ only for an added work tree."""

    own: Path
    common: Path


def git_directories(path: Path) -> GitDirectories:
    """Find the git directories of a repository or its work tree, where `git fetch` finds them.

    Raises NotARepository.
    """
    suffixed = path.with_name(f"{path.name}.git")
    for candidate in (path / ".git", path, suffixed / ".git", suffixed):
        own = _linked(candidate)
        if not (own / "HEAD").is_file():
            continue
        common = (own / (_line(own / "commondir") or ".")).absolute()
        if (common / "objects").is_dir() and (common / "refs").is_dir():
            return GitDirectories(own.absolute(), common)
    raise NotARepository(f"{path} does not appear to be a git repository")


def borrow(path: Path, place: Path) -> None:
    """Make or update the bare repository `place`, with which git reads the repository at `path`.

    Processes may do so at the same time. Raises NotARepository or OSError.
    """
    own, common = git_directories(path)
    (place / "objects" / "info").mkdir(parents=True, exist_ok=True)
    _link(place / "borrowed", common / "objects")
    for name in _LINKS:
        _link(place / name, common / name)
    # a path of ours, since no path with a line feed fits in this file
    _write(place / "objects" / "info" / "alternates", f"{place.absolute()}/borrowed\n")
    _write(place / "config", _CONFIG)
    head = _line(own / "HEAD")
    _write(place / "HEAD", f"{head if _HEAD.fullmatch(head) else _NOWHERE}\n")


@contextmanager
def borrowed(path: Path) -> Iterator[Path]:
    """Yield a bare repository with which git reads the one at `path`; it is deleted afterwards.

    Raises NotARepository or OSError.
    """
    with tempfile.TemporaryDirectory(prefix="swingbot-git-") as directory:
        place = Path(directory) / "borrowed.git"
        borrow(path, place)
        yield place


def _linked(candidate: Path) -> Path:
    """Return the git directory that the file `.git` of a work tree names, or the path itself."""
    line = _line(candidate) if candidate.is_file() else ""
    return candidate.parent / line.removeprefix("gitdir: ") if line else candidate


def _line(file: Path) -> str:
    """Return the only line of a short regular file; empty if there is none."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as opened:
            text = opened.read(limits.GIT_FILE_BYTES) if file.is_file() else b""
    except OSError:
        return ""
    return os.fsdecode(text).rstrip("\r\n")


def _link(link: Path, target: Path) -> None:
    if not link.is_symlink() or os.readlink(link) != str(target):
        new = _beside(link)
        new.symlink_to(target)
        new.replace(link)


def _write(file: Path, text: str) -> None:
    if not file.is_file() or file.read_bytes() != os.fsencode(text):
        new = _beside(file)
        new.write_bytes(os.fsencode(text))
        new.replace(file)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
