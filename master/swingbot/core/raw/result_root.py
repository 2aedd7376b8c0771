"""Result roots: the path of a run's results, in the form that LKP users know.

`result/<testcase>/<path params>/<tbox_group>/<rootfs>/<kconfig>/<compiler>/<commit>/<run>`, after
lkp-tests' `lib/result_root` path scheme: runs of the same measurement differ in `<run>` alone.
Three parts differ from LKP's on purpose: `<kconfig>` is the configuration that was built
(`+layout2` for another link order), `<rootfs>` is the digest of the guest image, and `<run>` counts
from 0 over all boots, beyond 99.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

TOP: Final = "result"
LEVELS: Final = (
    "testcase",
    "path params",
    "tbox_group",
    "rootfs",
    "kconfig",
    "compiler",
    "commit",
    "run",
)
_UNSAFE: Final = re.compile(r"[^-a-zA-Z0-9+=:.%_]")
_VERSION: Final = re.compile(r"\b([0-9]+)\.[0-9]+(?:\.[0-9]+)?\b")
_SEGMENT_LENGTH: Final = 255
_DIGEST: Final = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRootParts:
    """The parts of a result root. `rootfs` is the boot's fact of that name; None if unknown."""

    program: str
    unit_job: str
    tbox_group: str
    rootfs: str | None
    kconfig: str
    layout: int
    compiler: str
    compiler_version: str
    commit: str


def result_root(of: ResultRootParts) -> str:
    """The path without `<run>` (LKP's `_rt`) and outer slashes; every part is safe as a file
    name.
    """
    kconfig = f"{of.kconfig}+layout{of.layout}" if of.layout else of.kconfig
    parts = (
        of.program,
        path_params(of.program, of.unit_job),
        of.tbox_group,
        rootfs_name(of.rootfs),
        kconfig,
        compiler_name(of.compiler, of.compiler_version),
        of.commit,
    )
    return "/".join((TOP, *map(segment, parts)))


def path_params(program: str, unit_job: str) -> str:
    """The unit job's name without the program's: `cs-localhost-ipv4-50%-300s-TCP_RR`.

    A job file with another name than its program keeps it, so that no two share a result root.
    """
    return unit_job.removeprefix(f"{program}-") or "defaults"


def compiler_name(compiler: str, version: str) -> str:
    """`gcc-12` of gcc and "gcc (Debian 12.2.0-14) 12.2.0"; the requested name if there is no
    version.
    """
    match = _VERSION.search(version)
    plain = re.sub(r"-[0-9]+$", "", compiler)
    return f"{plain}-{match[1]}" if match else compiler


def rootfs_name(fact: str | None) -> str:
    """A name unchanged; `rootfs-` and twelve digits of a digest; or `unknown`."""
    if not fact:
        return "unknown"
    return f"rootfs-{fact[:12]}" if _DIGEST.fullmatch(fact) else fact


def segment(text: str) -> str:
    """Return a path component of at most 255 characters; unsafe characters, and a name of dots
    alone, become `_`.
    """
    safe = _UNSAFE.sub("_", text)[:_SEGMENT_LENGTH]
    return safe if safe.strip(".") else "_" * max(1, len(safe))
