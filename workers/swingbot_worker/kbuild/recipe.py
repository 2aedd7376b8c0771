"""How a kernel is built: commands and environments as data. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from swingbot_jobs import kernel_diff
from swingbot_jobs.contract.compiler import is_clang, make_variables
from swingbot_jobs.contract.trust import Trust
from swingbot_worker.order import Spec

# Part of every name under cache/kernels: raise it when anything below changes what comes out of a build.
RECIPE = 1

# The same for builds of another layout than 0.
LAYOUT_RECIPE = 2

# The same for builds by LLVM.
LLVM_RECIPE = 1

# make runs with these and nothing else, so that neither secrets nor habits of the host get into a build,
# and equal sources give equal images: kbuild writes date, user, host and build number into the kernel.
# An empty LOCALVERSION keeps it from asking git for a "+".
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "TZ": "UTC",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "swingbot",
    "KBUILD_BUILD_HOST": "swingbot",
    "KBUILD_BUILD_VERSION": "1",
    "LOCALVERSION": "",
}
CCACHE_SIZE = "5G"


def kept_name(key: str, compiler_version: str, layout: int = 0, compiler: str = "gcc") -> str:
    """Directory of a finished build: everything that could make it a different one is in the name."""
    recipe: object = [RECIPE, LAYOUT_RECIPE] if layout else RECIPE
    if is_clang(compiler):
        recipe = {"llvm": LLVM_RECIPE, "recipe": recipe}
    exact = hashlib.sha256(
        json.dumps([compiler_version, recipe, kernel_diff.VERSION]).encode()
    ).hexdigest()
    return f"{key}-{exact[:16]}"


def ccache_directory(cache: Path) -> Path:
    """Where trusted builds keep compiled objects; others have no compiler cache."""
    return cache / "ccache"


def environment(work: Path, cache: Path, trust: Trust = "trusted") -> dict[str, str]:
    """Environment of make and all below it."""
    ccache = {
        "CCACHE_DIR": str(ccache_directory(cache)),
        "CCACHE_BASEDIR": str(work),
        "CCACHE_MAXSIZE": CCACHE_SIZE,
    }
    if trust == "untrusted":
        # the command line stays the same: a changed one would compile everything again
        ccache = {"CCACHE_DISABLE": "1"}
    return {**ENVIRONMENT, "HOME": str(work), **ccache}


def make_argv(
    spec: Spec, source: Path, *, jobs: int, ccache: bool, targets: tuple[str, ...]
) -> list[str]:
    """The make command for `targets` (or variables of make); -O is kbuild's, a directory inside the source.

    Inside, because kbuild then writes relative paths into every command line, and ccache finds
    what another work tree on this host compiled.
    """
    compilers = make_variables(spec.compiler, prefix="ccache " if ccache else "")
    return [
        "make",
        "--no-print-directory",
        "-C",
        str(source),
        f"O={spec.object_directory}",
        f"-j{jobs}",
        "ARCH=x86_64",
        *compilers,
        *targets,
    ]


def merge_argv(spec: Spec, files: Sequence[Path]) -> list[str]:
    """Merge the files over the .config that is there, the last one on top; run in the source directory.

    The script makes a temporary file where it is started, and behind walls only the objects can be written to.
    """
    script = 'cd "$0" && exec sh ../scripts/kconfig/merge_config.sh -m -O . .config "$@"'
    return ["sh", "-c", script, spec.object_directory, *map(str, files)]


def lost_lines(fragment: str, config: str) -> list[str]:
    """Lines of the fragment that are not in the finished config: symbols this kernel has not, or will not have so."""
    there = set(config.splitlines())
    return [
        line
        for line in fragment.splitlines()
        if _sets_something(line) and line not in there and not _absent_as_wished(line, there)
    ]


def not_overridden(fragment: str, above: str) -> str:
    """The lines of `fragment` that set what none of the lines `above` sets."""
    later = {_symbol(line) for line in above.splitlines() if _sets_something(line)}
    return "\n".join(
        line
        for line in fragment.splitlines()
        if _sets_something(line) and _symbol(line) not in later
    )


def _symbol(line: str) -> str:
    return line.split()[1] if line.startswith("#") else line.partition("=")[0]


def _sets_something(line: str) -> bool:
    return bool(re.fullmatch(r"CONFIG_\w+=.+|# CONFIG_\w+ is not set", line))


def _absent_as_wished(line: str, there: set[str]) -> bool:
    return line.startswith("#") and not any(
        other.startswith(f"{_symbol(line)}=") for other in there
    )
