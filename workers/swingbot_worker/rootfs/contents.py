"""The content of a root file system, file by file, so that a reader can boot the same bytes.

Programs that not everybody may redistribute (those from Debian's non-free) are cut out of the copy
that leaves this worker. Zeros replace them, and the record names the package and version that
restores them. Pure except for dpkg queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from swingbot_jobs.reading.newc import CpioMember, members
from swingbot_worker import process
from swingbot_worker.rootfs.programs import Binary

VERSION = 1


def without(archive: bytes, left_out: Iterable[CpioMember]) -> bytes:
    """Return the archive with these files replaced by zeros of the same length."""
    out = bytearray(archive)
    for member in left_out:
        out[member.offset : member.offset + member.size] = bytes(member.size)
    return bytes(out)


def record(
    archive: bytes, binaries: Sequence[Binary], sources: Mapping[str, Path], non_free: Path
) -> tuple[dict[str, Any], bytes]:
    """Return rootfs.json and the archive that may leave this worker.

    `sources` are the host's files by their path in the archive; those below `non_free` are cut out.
    """
    files_in_archive = list(members(archive))
    cut = [
        member
        for member in files_in_archive
        if member.path in sources and non_free in sources[member.path].parents
    ]
    versions = {binary.target: binary.version for binary in binaries}
    packages = _packages(path for name, path in sources.items() if name not in versions)
    handed_on = without(archive, cut)
    files = [
        _described(
            archive,
            member,
            versions.get(member.path) or packages.get(sources.get(member.path, Path())),
            member in cut,
        )
        for member in files_in_archive
    ]
    return {
        "version": VERSION,
        "whole": _sha256(archive),
        "archive": _sha256(handed_on),
        "size": len(archive),
        "files": files,
    }, handed_on


def _described(
    archive: bytes, member: CpioMember, package: str | None, cut: bool
) -> dict[str, Any]:
    content = archive[member.offset : member.offset + member.size]
    entry: dict[str, Any] = {
        "path": member.path,
        "size": member.size,
        "sha256": _sha256(content),
        "package": package,
    }
    return entry | {"left_out": {"offset": member.offset}} if cut else entry


def _packages(paths: Iterable[Path]) -> dict[Path, str]:
    """Return `package version` of each file that dpkg installed.

    On a merged /usr, dpkg may list a file under either of its paths.
    """
    wanted = sorted(set(paths))
    names = [name for path in wanted for name in (str(path), str(path).removeprefix("/usr"))]
    owners: dict[str, str] = {}
    for line in (
        process.output(["dpkg-query", "-S", *names], timeout=60).text.splitlines() if names else ()
    ):
        package, separator, name = line.partition(": ")
        if separator and name.startswith("/") and "," not in package:
            owners[name] = package
    listing = (
        process.output(
            [
                "dpkg-query",
                "-W",
                "-f",
                "${binary:Package} ${Version}\n",
                *sorted(set(owners.values())),
            ],
            timeout=60,
        ).text
        if owners
        else ""
    )
    versions = dict(line.split(" ", 1) for line in listing.splitlines() if " " in line)
    versions |= {name.partition(":")[0]: version for name, version in versions.items()}
    packages = {}
    for path in wanted:
        owner = owners.get(str(path)) or owners.get(str(path).removeprefix("/usr"))
        if owner is not None and (
            version := versions.get(owner) or versions.get(owner.partition(":")[0])
        ):
            packages[path] = f"{owner.partition(':')[0]} {version}"
    return packages


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
