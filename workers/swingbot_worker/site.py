"""The directories of this worker: one value, read once from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swingbot_jobs import resources
from swingbot_worker import InfraError


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Paths of one worker host.

    All are absolute. Only `cache` is written to, and its content can be rebuilt.
    """

    # shared by all workers of this host: kernels, work trees, ccache, root file systems
    cache: Path
    workers: Path  # testboxes/, kconfig/ and rootfs/
    jobs: Path  # job files and programs/
    benchmarks: Path | None  # binaries built by the operator; they take precedence over Debian's
    make_jobs: int  # make -j

    @property
    def kconfig(self) -> Path:
        """Directory of the kernel configurations."""
        return self.workers / "kconfig"


def from_environment(environ: Mapping[str, str] | None = None) -> Site:
    """Read the site from `SWINGBOT_PATHS_*`, `SWINGBOT_BENCHMARKS_DIR` and `SWINGBOT_BUILD_JOBS`.

    An empty variable counts as unset. Raises InfraError for an invalid value.
    """
    env = os.environ if environ is None else environ
    benchmarks = env.get("SWINGBOT_BENCHMARKS_DIR")
    return Site(
        cache=_path(
            env.get("SWINGBOT_PATHS_CACHE") or f"{env.get('XDG_CACHE_HOME') or '~/.cache'}/swingbot"
        ),
        workers=_path(env.get("SWINGBOT_PATHS_WORKERS") or str(resources.folder("workers"))),
        jobs=_path(env.get("SWINGBOT_PATHS_JOBS") or str(resources.folder("jobs"))),
        benchmarks=_path(benchmarks) if benchmarks else None,
        make_jobs=_make_jobs(env.get("SWINGBOT_BUILD_JOBS") or "0"),
    )


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _make_jobs(text: str) -> int:
    if not text.isdigit():
        raise InfraError(
            f"SWINGBOT_BUILD_JOBS is {text!r}; set it to a number, 0 for one job per processor."
        )
    return int(text) or len(os.sched_getaffinity(0))
