"""The name under which the results of a run are found, in the form that LKP users know.

`result/<testcase>/<path params>/<tbox_group>/<rootfs>/<kconfig>/<compiler>/<commit>/<run>`, after lkp-tests' `lib/result_root`
path scheme: all but `<run>` is what may not differ between runs that are the same measurement. Ours differs in three places, on
purpose: `<kconfig>` is the configuration that was built (`+layout2` where the linker laid the kernel out otherwise), `<rootfs>` says
which guest image it was, by digest, and `<run>` counts on from 0 over all boots without an end at 99.
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
    """What a result root is made of. `rootfs` is the boot's fact of that name, None where the box did not say."""

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
    """The name without `<run>` (LKP's `_rt`) and without a slash at either end; every part is safe as a file name."""
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
    """The unit job's name without the program's: `cs-localhost-ipv4-50%-300s-TCP_RR` of `netperf-cs-localhost-ipv4-50%-300s-TCP_RR`.

    A job file that is not called like its program keeps its name here, so that two of them never share a result root.
    """
    return unit_job.removeprefix(f"{program}-") or "defaults"


def compiler_name(compiler: str, version: str) -> str:
    """`gcc-12` of gcc and "gcc (Debian 12.2.0-14) 12.2.0"; the compiler as it was asked for where its version says nothing."""
    found = _VERSION.search(version)
    plain = re.sub(r"-[0-9]+$", "", compiler)
    return f"{plain}-{found[1]}" if found else compiler


def rootfs_name(fact: str | None) -> str:
    """A name as it is; a digest as its first twelve digits after `rootfs-`; `unknown` where nothing is known."""
    if not fact:
        return "unknown"
    return f"rootfs-{fact[:12]}" if _DIGEST.fullmatch(fact) else fact


def segment(text: str) -> str:
    """One part of a path: whatever else a name holds becomes `_`, a name of dots alone does too, and nothing is longer than a file name."""
    safe = _UNSAFE.sub("_", text)[:_SEGMENT_LENGTH]
    return safe if safe.strip(".") else "_" * max(1, len(safe))
