"""Estimate the cost of a culprit's gates in advance: kernel builds, boots, seconds."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.model.records import Variant
from swingbot.service.kernel.foresee_builds import build_seconds
from swingbot.service.ports import Git
from swingbot.service.ports.builds import KernelBuilds


def foresee(
    git: Git,
    builds: KernelBuilds,
    kernels: Sequence[Variant],
    count: int,
    each: float,
) -> dict[str, float]:
    """Return {"builds", "boots", "seconds"} for booting each of `kernels` `count` times, `each`
    in seconds.

    Existing shared boots are counted too, so this is an upper bound.
    """
    known = builds.by_key([kernel.build_key for kernel in kernels])
    missing = {kernel.build_key: kernel for kernel in kernels if kernel.build_key not in known}
    return {
        "builds": len(missing),
        "boots": count * len(kernels),
        "seconds": round(
            sum(build_seconds(git, builds, list(missing.values()))) + each * count * len(kernels),
            1,
        ),
    }
