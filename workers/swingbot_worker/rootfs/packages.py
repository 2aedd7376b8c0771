"""Debian packages of this host as files of a guest: each with what it depends on, without documentation and translations.

For guests that need more than single programs, such as an interpreter with its library. Files are this host's own, as everywhere in the guest.
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
    r"usr/share/(?:doc|man|info|locale|lintian|bug|bash-completion|zsh|ri|gcc|perl5|pam|doc-base|menu)/|usr/include/|etc/(?:init|cron|pam|systemd)"
)
_MERGED = re.compile(r"(?:bin|sbin|lib|lib64)(?:/|$)")
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_FORMAT = "${Package}\t${Version}\t${db:Status-Status}\t${Pre-Depends}, ${Depends}\t${Provides}\n"


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package: its version, and for each of its dependencies the names of which one is enough."""

    version: str
    depends: Sequence[Sequence[str]]


def installed(listing: str) -> tuple[dict[str, Package], dict[str, str]]:
    """What `dpkg-query` with our format lists: packages by name, and who provides a name that is no package. Pure."""
    found: dict[str, Package] = {}
    provided: dict[str, str] = {}
    for line in listing.splitlines():
        name, version, status, depends, provides = line.split("\t")
        if status == "installed":
            found[name] = Package(
                version, [_names(part.split("|")) for part in depends.split(",") if part.strip()]
            )
            for other in _names(provides.split(",")):
                provided.setdefault(other, name)
    return found, provided


def _names(texts: Iterable[str]) -> list[str]:
    return [match[0] for text in texts if (match := _NAME.match(text.strip()))]


def closure(
    wanted: Iterable[str],
    known: tuple[Mapping[str, Package], Mapping[str, str]],
    without: Collection[str],
) -> list[str]:
    """`wanted` and all that they depend on, sorted; what is in `without` is left out, and with it what only that needs.

    Raises InfraError with what to install.
    """
    found, provided = known
    missing = sorted(name for name in wanted if name not in found)
    if missing:
        raise InfraError(
            f"The Debian packages {', '.join(missing)} are not on this worker; apt-get install {' '.join(missing)}."
        )
    todo, seen = list(wanted), set[str]()
    while todo:
        name = todo.pop()
        if name not in seen and name not in without:
            seen.add(name)
            for names in found[name].depends:
                there = [
                    other if other in found else provided[other]
                    for other in names
                    if other in found or other in provided
                ]
                todo += there[:1]
    return sorted(seen)


def entries(
    wanted: Iterable[str], without: Collection[str]
) -> tuple[list[cpio.Entry], dict[str, str]]:
    """The files of `wanted` and of what they depend on, and the version of each of `wanted`."""
    names = list(wanted)
    known = installed(process.output(["dpkg-query", "-W", "-f", _FORMAT], timeout=60).text)
    packages = closure(names, known, without)
    listed = process.output(["dpkg-query", "-L", *packages], timeout=60).text
    return list(_files(listed.splitlines())), {name: known[0][name].version for name in names}


def _files(paths: Iterable[str]) -> Iterator[cpio.Entry]:
    for path in sorted({place for path in paths if (place := _place(path))}):
        there = Path("/", path)
        try:
            mode = there.lstat().st_mode
            if stat.S_ISLNK(mode):
                yield cpio.link(path, os.readlink(there))
            elif stat.S_ISREG(mode):
                yield cpio.file(path, there.read_bytes(), executable=bool(mode & 0o111))
        except FileNotFoundError:
            continue  # a machine image may have its documentation and the like taken out


def _place(path: str) -> str | None:
    """Where a file of a package goes: /bin and /lib lie under /usr."""
    if not path.startswith("/") or path == "/.":
        return None  # `dpkg-query -L` puts an empty line between packages, and remarks about diversions
    place = path.lstrip("/")
    if _MERGED.match(place):
        place = f"usr/{place}"
    return None if _UNWANTED.match(place) else place
