"""The key of a boot of a bisection."""

from __future__ import annotations

from swingbot.core.model.records import Bisection, BootKey, Variant


def boot_key(bisection: Bisection, variant: Variant, k: int, testbox: int = 0) -> BootKey:
    return BootKey(
        build_key=variant.build_key,
        testbox=bisection.testboxes[testbox],
        spec=bisection.spec,
        series=bisection.series,
        k=k,
    )
