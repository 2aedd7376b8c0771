"""Copy installed Debian packages and their dependencies into a guest, without documentation.

This is for guests that need more than single programs, such as an interpreter with its library. As
everywhere in the guest, the files are those of this host.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import InfraError, process
from swingbot_worker.rootfs import cpio

_UNWANTED = re.compile(
    r"usr/share/(?:doc|man|info|locale|lintian|bug|bash-completion|zsh|ri|gcc|perl5|pam|doc-base"
    r"|menu)/|usr/include/|etc/(?:init|cron|pam|systemd)"
)
_MERGED = re.compile(r"(?:bin|sbin|lib|lib64)(?:/|$)")
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_FORMAT = "${Package}\t${Version}\t${db:Status-Status}\t${Pre-Depends}, ${Depends}\t${Provides}\n"


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package: its version, and the alternatives of each of its dependencies."""

    version: str
    depends: Sequence[Sequence[str]]


def installed(listing: str) -> tuple[dict[str, Package], dict[str, str]]:
    """Parse the output of `dpkg-query` with _FORMAT. Pure.

    Returns the packages by name, and the provider of each virtual package.
    """
    packages: dict[str, Package] = {}
    provided: dict[str, str] = {}
    for line in listing.splitlines():
        name, version, status, depends, provides = line.split("\t")
        if status == "installed":
            packages[name] = Package(
                version, [_names(part.split("|")) for part in depends.split(",") if part.strip()]
            )
            for other in _names(provides.split(",")):
                provided.setdefault(other, name)
    return packages, provided


def _names(texts: Iterable[str]) -> list[str]:
    return [match[0] for text in texts if (match := _NAME.match(text.strip()))]


def closure(
    wanted: Iterable[str],
    known: tuple[Mapping[str, Package], Mapping[str, str]],
    without: Collection[str],
) -> list[str]:
    """Return `wanted` and their dependencies, sorted, except for those in `without`.

    Dependencies of only those are omitted too.

    Raises InfraError that names the packages to install.
    """
    packages, provided = known
    missing = sorted(name for name in wanted if name not in packages)
    if missing:
        raise InfraError(
            f"The Debian packages {', '.join(missing)} are not on this worker; run apt-get install "
            f"{' '.join(missing)}."
        )
    todo, seen = list(wanted), set[str]()
    while todo:
        name = todo.pop()
        if name not in seen and name not in without:
            seen.add(name)
            for names in packages[name].depends:
                candidates = [
                    other if other in packages else provided[other]
                    for other in names
                    if other in packages or other in provided
                ]
                todo += candidates[:1]
    return sorted(seen)


def entries(
    wanted: Iterable[str], without: Collection[str]
) -> tuple[list[cpio.Entry], dict[str, str]]:
    """Return the files of `wanted` and their dependencies, and the version of each of `wanted`."""
    names = list(wanted)
    known = installed(process.output(["dpkg-query", "-W", "-f", _FORMAT], timeout=60).text)
    packages = closure(names, known, without)
    listed = process.output(["dpkg-query", "-L", *packages], timeout=60).text
    return list(_files(listed.splitlines())), {name: known[0][name].version for name in names}


def _files(paths: Iterable[str]) -> Iterator[cpio.Entry]:
    for path in sorted({place for path in paths if (place := _place(path))}):
        file = Path("/", path)
        try:
            mode = file.lstat().st_mode
            if stat.S_ISLNK(mode):
                yield cpio.link(path, os.readlink(file))
            elif stat.S_ISREG(mode):
                yield cpio.file(path, file.read_bytes(), executable=bool(mode & 0o111))
        except FileNotFoundError:
            continue  # a machine image may come without documentation and similar files


def _place(path: str) -> str | None:
    """Return the guest path of a package's file: /bin and /lib are under /usr."""
    if not path.startswith("/") or path == "/.":
        # `dpkg-query -L` prints empty lines between packages, and notes about diversions
        return None
    place = path.lstrip("/")
    if _MERGED.match(place):
        place = f"usr/{place}"
    return None if _UNWANTED.match(place) else place
