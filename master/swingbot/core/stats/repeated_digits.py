"""Boots that print the same digits whichever kernel runs: a stale file, a testbox that is stuck.

A quantised metric repeats too, so its resolution is read off the printed digits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from swingbot.core.stats.moments import mean
from swingbot.core.stats.rounding import last_digit

FEWEST: Final = 6  # boots that print the same
_FEWEST_OF_EACH: Final = 3  # if there are several, or the runs of a boot differ
_APART: Final = 10  # units of the last digit between boots that repeat and others
_TICKS: Final = 2_000  # of a coarse clock: 512 and 513 ms make rates of many digits
_UNITS: Final = 10_000  # a level of so many units of the last digit does not repeat by chance


def repeated_digits(kernels: Sequence[Sequence[tuple[float, ...]]], *, paired: bool) -> str | None:
    """Return what to say of boots that repeat across kernels, or None.

    `kernels`: for each image the values of its boots, one for each run. More than half of all boots
    print the same digits (of several stale results each repeats), of at least two images, and boots
    of one of these images print something else; or all boots are equal, which a `paired` testbox
    does by design.
    """
    boots = [boot for kernel in kernels for boot in kernel if boot]
    if not boots:
        return None
    unit = min(last_digit(value) for boot in boots for value in boot)
    stale: dict[tuple[float, ...], int] = {}
    for boot, count in Counter(boots).most_common():
        alone = all(abs(mean(boot) - mean(other)) >= _APART * unit for other in stale)
        images = sum(boot in kernel for kernel in kernels)
        if count >= _FEWEST_OF_EACH and images > 1 and alone:
            stale[boot] = count
    times = sum(stale.values())
    units = {boot: _units(boot, unit) for boot in stale}
    same = max(units, key=lambda boot: units[boot], default=())
    if 2 * times <= len(boots) or units[same] < _UNITS:
        return None
    if times < FEWEST and len(set(same)) < 2:
        return None
    within = [kernel for kernel in kernels if same in kernel]
    apart = any(
        boot
        and boot not in stale
        and abs(mean(boot) - mean(same)) >= _APART * unit
        and not _ticks(same, boot)
        for kernel in within
        for boot in kernel
    )
    if not apart and (paired or times < len(boots)):
        return None
    given = " or ".join(f"{boot[0]:.10g}" for boot in list(stale)[:3])
    return (
        f"{times} of {len(boots)} boots gave exactly {given}, whichever kernel ran: a stale"
        " result or a testbox that is stuck? No absence of a change follows from them"
    )


def _units(boot: Sequence[float], unit: float) -> float:
    """Return how many results are as likely: of a level, times distances from it of other runs."""
    first, *others = dict.fromkeys(boot)
    return abs(first) / unit * math.prod(abs(value - first) / unit for value in others)


def _ticks(same: Sequence[float], boot: Sequence[float]) -> bool:
    """Return whether the values are one amount over times of a coarse clock."""
    ratios = [a / b if b else 0.0 for a, b in zip(same, boot, strict=False)]
    return all(
        abs(float(Fraction(ratio).limit_denominator(_TICKS)) - ratio) < 1e-12 for ratio in ratios
    )
