"""The Debian packages of `swingbot here`, known without the extras that it needs as well."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from swingbot_jobs.contract.compiler import BUILD_TOOLS, programs

# What builds and boots need beside the tools of a build: program or file -> Debian package.
_PROGRAMS: Final = {
    "git": "git",
    "busybox": "busybox",
    "cpio": "cpio",
    "qemu-system-x86_64": "qemu-system-x86",
    "perf": "linux-perf",
    "hackbench": "rt-tests",
}
_HEADERS: Final = {
    "gelf.h": "libelf-dev",
    "openssl/opensslv.h": "libssl-dev",
    "stdio.h": "libc6-dev",
}


def missing_packages(
    which: Callable[[str], object] = shutil.which, include: Path = Path("/usr/include")
) -> list[str]:
    """Return the Debian packages that a build or a boot lacks on this machine."""
    wanted = {**BUILD_TOOLS, **programs("gcc"), **_PROGRAMS}
    lacking = {package for program, package in wanted.items() if which(program) is None}
    lacking |= {package for name, package in _HEADERS.items() if not _has(include, name)}
    return sorted(lacking)


def _has(include: Path, name: str) -> bool:
    """Return True if a header is in `include`, or in the folder of an architecture below."""
    return any(file.is_file() for file in (include / name, *include.glob(f"*-linux-gnu*/{name}")))
