"""The programs that a kernel build needs: check that they are installed and get their version."""

from __future__ import annotations

import shutil

from swingbot_jobs.contract.compiler import BUILD_TOOLS, FORM, is_compiler, programs
from swingbot_worker import InfraError, process
from swingbot_worker.kbuild.recipe import ENVIRONMENT


def compiler_version(compiler: str) -> str:
    """Return the first line of `<compiler> --version`. Raises InfraError if a tool is missing."""
    if not is_compiler(compiler):
        raise InfraError(f"{compiler[:80]!r} is not a compiler that swingbot builds with: {FORM}.")
    _need({**programs(compiler), **BUILD_TOOLS})
    answer = process.output([compiler, "--version"], timeout=60, env=ENVIRONMENT)
    first = answer.text.partition("\n")[0].strip()[:500]
    if answer.rc != 0 or not first:
        raise InfraError(
            f"`{compiler} --version` failed on this worker ({first or 'no output'}); reinstall "
            f"package {compiler}."
        )
    return first


def has_ccache() -> bool:
    """Return whether ccache is installed. It saves time and does not affect the image."""
    return shutil.which("ccache", path=ENVIRONMENT["PATH"]) is not None


def _need(programs: dict[str, str]) -> None:
    missing = sorted(
        {
            package
            for program, package in programs.items()
            if shutil.which(program, path=ENVIRONMENT["PATH"]) is None
        }
    )
    if missing:
        raise InfraError(
            f"This worker cannot build kernels: install package {' '.join(missing)} (apt-get "
            f"install {' '.join(missing)})."
        )
