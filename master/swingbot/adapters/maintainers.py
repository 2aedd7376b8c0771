"""Run a tree's own scripts/get_maintainer.pl on one commit: an untrusted program on untrusted data,
so it runs behind walls or not at all.

It has no network, separate process and network namespaces, an empty directory with only its input,
and limits of time, memory and output. It can read only world-readable files of the host: as root,
swingbot runs it as user `nobody`; as another user, which could read its own files, in a user
namespace with a root directory that has only the system's programs. If the host does not allow
these walls, it does not run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from swingbot.adapters import process
from swingbot.core.mail.recipients import (
    BadMaintainers,
    MaintainerEntry,
    NoMaintainers,
    read_maintainers,
)

SECONDS: Final = 30.0
_BYTES: Final = 16 << 20  # limit of each file extracted from the tree, and of the patch
_OUTPUT: Final = 256 << 10
_MEMORY_KB: Final = 1 << 20
_NOBODY: Final = 65534
_SCRIPT: Final = "scripts/get_maintainer.pl"
_WANTED: Final = (
    (_SCRIPT, True),
    ("MAINTAINERS", True),
    (".get_maintainer.ignore", False),
    (".mailmap", False),
)
_OPTIONS: Final = (
    "--no-tree",
    "--nogit",
    "--nogit-fallback",
    "--norolestats",
    "--roles",
    "--nokeywords",
    "--nofixes",
)
_DROP: Final = ("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")
_APART: Final = ("unshare", "--net", "--pid", "--ipc", "--mount")
# Mounts are never changed inside, so their propagation does not matter; changing it fails in a
# chroot.
_AS_ROOT: Final = (
    *(*_APART, "--propagation", "unchanged", "--fork", "--kill-child"),
    *("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", *_DROP),
)
# Mount what programs need below `$0/root`, and the directory `$0` as /work, and run the remaining
# arguments there.
_NEW_ROOT: Final = """set -e
r="$0/root"
mkdir -p "$r/work" "$r/dev" "$r/tmp"
: >"$r/dev/null"
mount --bind /dev/null "$r/dev/null"
for d in usr bin lib lib64; do
  if [ -L "/$d" ]; then
    cp -P "/$d" "$r/$d"
  elif [ -d "/$d" ]; then
    mkdir "$r/$d"
    mount --bind "/$d" "$r/$d"
  fi
done
mount --bind "$0" "$r/work"
cd "$r"
exec chroot . setpriv --no-new-privs --inh-caps=-all --bounding-set=-all \\
  sh -c 'cd /work && exec "$@"' sh "$@"
"""
_AS_USER: Final = (
    *_APART,
    "--user",
    "--map-root-user",
    "--fork",
    "--kill-child",
    "sh",
    "-c",
    _NEW_ROOT,
)


def _behind_walls(place: Path, argv: Sequence[str]) -> list[str]:
    """Return `argv` behind walls with `place` as its directory; its outputs go to `out/` there."""
    return [*_AS_ROOT, *argv] if os.geteuid() == 0 else [*_AS_USER, str(place), *argv]


def maintainers_of(
    mirror: Path, commit: str, *, seconds: float = SECONDS
) -> tuple[MaintainerEntry, ...]:
    """Return maintainers and lists of `commit` in the bare repository `mirror`.

    Raises NoMaintainers.
    """
    missing = no_walls()
    if missing is not None:
        raise NoMaintainers(f"get_maintainer.pl runs only behind walls: {missing}")
    with tempfile.TemporaryDirectory(prefix="swingbot-maintainers-") as directory:
        place = Path(directory)
        _take_out(mirror, commit, place, seconds)
        place.chmod(0o755)
        (place / "out").mkdir()
        if os.geteuid() == 0:
            os.chown(place / "out", _NOBODY, _NOBODY)
        command = _limited(
            ["perl", f"./{_SCRIPT}", *_OPTIONS, "patch"], "out/", _OUTPUT, int(seconds) + 1
        )
        ended = process.run(
            _behind_walls(place, command), timeout=seconds, cwd=place, env=_environment(place)
        )
        printed = _read(place / "out/stdout")
        if ended.rc == 124:
            raise NoMaintainers(
                f"get_maintainer.pl did not end within {seconds:.0f} s and was stopped"
            )
        if ended.rc != 0:
            why = (
                _last_line(_read(place / "out/stderr"))
                or _last_line(ended.err)
                or "it printed no reason"
            )
            raise NoMaintainers(f"get_maintainer.pl ended with {ended.rc}: {why}")
    try:
        return read_maintainers(printed)
    except BadMaintainers as error:
        raise NoMaintainers(str(error)) from None


def no_walls() -> str | None:
    """Return why this host does not allow the walls; None if it does."""
    lacking = [name for name in ("unshare", "setpriv", "perl") if not shutil.which(name)]
    if lacking:
        return f"{' and '.join(lacking)} not found on this host"
    with tempfile.TemporaryDirectory(prefix="swingbot-walls-") as directory:
        tried = process.run(
            _behind_walls(Path(directory), ["true"]),
            timeout=SECONDS,
            cwd=Path(directory),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
    return (
        None
        if tried.rc == 0
        else f"this host does not allow them ({_last_line(tried.err) or f'status {tried.rc}'})"
    )


def _take_out(mirror: Path, commit: str, place: Path, seconds: float) -> None:
    """Extract the script, its input files, and the commit's patch.

    Raises NoMaintainers for a merge or a root commit, which have none.
    """
    parents = _git(
        mirror, place, "rev-list", "--parents", "-n", "1", f"{commit}^{{commit}}", seconds=seconds
    )
    if parents is None:
        raise NoMaintainers(f"{commit[:40]} is not a commit in this mirror")
    count = len(parents.split()) - 1
    if count != 1:
        raise NoMaintainers(
            "the commit is a merge: it has no patch of its own"
            if count
            else "the commit has no parent: its patch is the whole tree"
        )
    (place / "scripts").mkdir()
    for name, needed in _WANTED:
        text = _git(mirror, place, "cat-file", "blob", f"{commit}:{name}", seconds=seconds)
        if text is None and needed:
            raise NoMaintainers(f"the tree has no {name}, or it is larger than {_BYTES >> 20} MB")
        if text is not None:
            (place / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    patch = _git(
        mirror,
        place,
        "diff-tree",
        "-p",
        "--no-ext-diff",
        "--no-textconv",
        "--no-commit-id",
        commit,
        seconds=seconds,
    )
    if patch is None:
        raise NoMaintainers(f"the commit's patch is larger than {_BYTES >> 20} MB")
    (place / "patch").write_text(patch, encoding="utf-8", errors="surrogateescape")


def _git(mirror: Path, place: Path, *arguments: str, seconds: float) -> str | None:
    """Return the output of git; None if it fails, or if the output exceeds the limit."""
    argv = _limited(["git", "--git-dir", str(mirror), *arguments], "git-", _BYTES, int(seconds) + 1)
    ended = process.run(argv, timeout=seconds, cwd=place, env=_environment(place))
    return _read(place / "git-stdout") if ended.rc == 0 else None


def _limited(argv: Sequence[str], prefix: str, output: int, seconds: int) -> list[str]:
    """Return `argv` with outputs to files of at most `output` bytes, `seconds` of CPU time and 1 GB
    of memory.
    """
    limits = f"ulimit -c 0; ulimit -t {seconds}; ulimit -f {output // 512}; ulimit -v {_MEMORY_KB}"
    return [
        "sh",
        "-c",
        f'{limits}; exec "$@" >{prefix}stdout 2>{prefix}stderr </dev/null',
        "sh",
        *argv,
    ]


def _environment(place: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": str(place),
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _read(path: Path) -> str:
    """Return a file up to the limit; empty if it is missing or not a regular file (the untrusted
    program may have replaced it).
    """
    if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_BYTES + 512).decode("utf-8", "surrogateescape")


def _last_line(text: str) -> str:
    return " ".join(text.encode("ascii", "replace").decode().strip().split("\n")[-1].split())[:200]
