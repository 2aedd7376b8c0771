"""What the gates of a culprit will cost, said before any work is spent on them: kernels to build, boots, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.model.records import Variant
from swingbot.service.kernel.foresee_builds import build_seconds
from swingbot.service.ports import Lab, Transaction

USUAL_BOOT_SECONDS: Final = 10.0  # of a testbox that nothing is known of yet


def foresee(
    lab: Lab, tx: Transaction, kernels: Sequence[Variant], testbox: str, spec: str, boots: int
) -> dict[str, float]:
    """{"builds", "boots", "seconds"} of booting each of `kernels` `boots` times; boots that are known and shared still count, so it is an upper bound."""
    known = tx.builds.by_key([kernel.build_key for kernel in kernels])
    missing = {kernel.build_key: kernel for kernel in kernels if kernel.build_key not in known}
    each = tx.boots.seconds(testbox, spec) or USUAL_BOOT_SECONDS
    return {
        "builds": len(missing),
        "boots": boots * len(kernels),
        "seconds": round(
            sum(build_seconds(lab, tx.builds, list(missing.values())))
            + each * boots * len(kernels),
            1,
        ),
    }
