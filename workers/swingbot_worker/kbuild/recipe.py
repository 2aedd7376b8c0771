"""Commands and environments of a kernel build, as data. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from swingbot_jobs import kernel_diff
from swingbot_jobs.contract.compiler import is_clang, make_variables
from swingbot_jobs.contract.trust import Trust
from swingbot_worker.order import Spec

# Part of every name under cache/kernels: increase it when a change below affects the result of a
# build.
RECIPE = 1

# The same for builds with a layout other than 0.
LAYOUT_RECIPE = 2

# The same for builds with LLVM.
LLVM_RECIPE = 1

# make runs with these variables only, so that neither secrets nor settings of the host get into a
# build, and equal sources give equal images: kbuild writes date, user, host and build number into
# the kernel.
# An empty LOCALVERSION keeps it from asking git whether to append a "+".
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
CCACHE_SIZE = "3G"  # of each tree


def kept_name(key: str, compiler_version: str, layout: int = 0, compiler: str = "gcc") -> str:
    """Return the directory name of a build, which covers everything that affects its result."""
    recipe: object = [RECIPE, LAYOUT_RECIPE] if layout else RECIPE
    if is_clang(compiler):
        recipe = {"llvm": LLVM_RECIPE, "recipe": recipe}
    exact = hashlib.sha256(
        json.dumps([compiler_version, recipe, kernel_diff.VERSION]).encode()
    ).hexdigest()
    return f"{key}-{exact[:16]}"


def environment(work: Path, ccache_directory: Path, trust: Trust = "trusted") -> dict[str, str]:
    """Return the environment of make and its child processes; only trusted builds have a ccache."""
    ccache = {
        "CCACHE_DIR": str(ccache_directory),
        "CCACHE_BASEDIR": str(work),
        "CCACHE_MAXSIZE": CCACHE_SIZE,
        # instead of ccache.conf in the cache, where a build can write: it may name programs
        "CCACHE_CONFIGPATH": "/dev/null",
    }
    if trust == "untrusted":
        # the command line stays the same, because a changed one would recompile everything
        ccache = {"CCACHE_DISABLE": "1"}
    return {**ENVIRONMENT, "HOME": str(work), **ccache}


def make_argv(
    spec: Spec, source: Path, *, jobs: int, ccache: bool, targets: tuple[str, ...]
) -> list[str]:
    """Return the make command for `targets` (or make variables).

    O= is a directory inside the source, so that kbuild writes relative paths into every command
    line, and ccache finds objects that another work tree on this host compiled.
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


def merge_argv(spec: Spec, over: str, files: Sequence[Path]) -> list[str]:
    """Return the command that makes .config of the file `over` in the object directory, with
    `files` merged over it, the last one on top.

    Run it in the source directory. The script creates a temporary file in its working directory,
    and in the sandbox only the object directory is writable.
    """
    script = 'cd "$0" && exec sh ../scripts/kconfig/merge_config.sh -m -O . "$@"'
    return ["sh", "-c", script, spec.object_directory, over, *map(str, files)]
