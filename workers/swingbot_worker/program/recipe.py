"""Build recipes of the benchmark programs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The recipe of one program. The commands run in sequence in its source directory."""

    program: str
    upstream: str
    marks: tuple[str, ...]  # files that identify this program's source
    headers: Mapping[str, str]  # header below /usr/include -> Debian package
    commands: tuple[tuple[str, ...], ...]
    outputs: re.Pattern[str]  # paths of binaries in the source directory; the file name is kept

    def command_lines(self, jobs: int) -> list[list[str]]:
        """Return the commands with `{jobs}` replaced by the number of parallel jobs."""
        return [[word.replace("{jobs}", str(jobs)) for word in line] for line in self.commands]

    def binaries(self, paths: Iterable[str]) -> list[str]:
        """Return the program's binaries among `paths` (relative to the source), sorted."""
        return sorted(path for path in paths if self.outputs.fullmatch(path))


_AUTOTOOLS: Final = (
    "aclocal -I src/missing/m4 && automake --add-missing --copy && autoconf && autoheader"
)
_ALL: Final = (
    Recipe(
        program="will-it-scale",
        upstream="https://github.com/antonblanchard/will-it-scale",
        marks=("Makefile", "main.c", "tests/page_fault1.c"),
        headers={"hwloc.h": "libhwloc-dev"},
        commands=(("make", "-j{jobs}", "all"),),
        outputs=re.compile(r"[A-Za-z0-9_]{1,64}_(?:processes|threads)"),
    ),
    Recipe(
        program="netperf",
        upstream="https://github.com/HewlettPackard/netperf",
        marks=("configure.ac", "src/netperf.c", "src/netserver.c"),
        headers={"netinet/sctp.h": "libsctp-dev"},
        commands=(
            # A checkout has no configure, unlike a release, and needs autoconf and automake.
            # --copy, because links are deleted after each command.
            ("sh", "-c", f"test -e configure || {{ {_AUTOTOOLS}; }}"),
            # 2.7.0 defines globals in headers, which gcc 10 and later reject by default.
            ("sh", "./configure", "--enable-sctp", "CFLAGS=-O2 -fcommon"),
            ("make", "-j{jobs}", "-C", "src", "netperf", "netserver"),
        ),
        outputs=re.compile(r"src/(?:netperf|netserver)"),
    ),
)
RECIPES: Final[Mapping[str, Recipe]] = {recipe.program: recipe for recipe in _ALL}
