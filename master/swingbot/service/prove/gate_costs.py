"""Estimate the cost of a culprit's gates in advance: kernel builds, boots, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.model.records import Variant
from swingbot.service.kernel.foresee_builds import build_seconds
from swingbot.service.ports import Lab, Transaction

USUAL_BOOT_SECONDS: Final = 10.0  # for a testbox without any boots


def foresee(
    lab: Lab, tx: Transaction, kernels: Sequence[Variant], testbox: str, spec: str, boots: int
) -> dict[str, float]:
    """Return {"builds", "boots", "seconds"} for booting each of `kernels` `boots` times.

    Existing shared boots are counted too, so this is an upper bound.
    """
    known = tx.builds.by_key([kernel.build_key for kernel in kernels])
    missing = {kernel.build_key: kernel for kernel in kernels if kernel.build_key not in known}
    each = tx.boots.seconds(testbox, spec) or USUAL_BOOT_SECONDS
    return {
        "builds": len(missing),
        "boots": boots * len(kernels),
        "seconds": round(
            sum(build_seconds(lab.tools.git, tx.builds, list(missing.values())))
            + each * boots * len(kernels),
            1,
        ),
    }
