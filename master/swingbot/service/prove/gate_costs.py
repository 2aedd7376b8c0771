"""Estimate the cost of a culprit's gates in advance: kernel builds, boots, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.model.records import Variant
from swingbot.service.kernel.foresee_builds import build_seconds
from swingbot.service.ports import Git
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds

USUAL_BOOT_SECONDS: Final = 10.0  # for a testbox without any boots


def foresee(
    git: Git,
    builds: KernelBuilds,
    boots: Boots,
    kernels: Sequence[Variant],
    testbox: str,
    spec: str,
    count: int,
) -> dict[str, float]:
    """Return {"builds", "boots", "seconds"} for booting each of `kernels` `count` times.

    Existing shared boots are counted too, so this is an upper bound.
    """
    known = builds.by_key([kernel.build_key for kernel in kernels])
    missing = {kernel.build_key: kernel for kernel in kernels if kernel.build_key not in known}
    each = boots.seconds(testbox, spec) or USUAL_BOOT_SECONDS
    return {
        "builds": len(missing),
        "boots": count * len(kernels),
        "seconds": round(
            sum(build_seconds(git, builds, list(missing.values()))) + each * count * len(kernels),
            1,
        ),
    }
