"""Read samples as people type them: `1,2;3,4` is two boots of two runs each."""

from __future__ import annotations

import math

from swingbot.core.stats.compare import BootRuns


class BadSamples(ValueError):
    """What was typed is not samples; the message says which part and what it should look like."""


def parse_boots(text: str) -> list[BootRuns]:
    """Commas between the runs of a boot, semicolons between boots; the n-th boot gets k = n, counted from 0."""
    if not text.strip():
        raise BadSamples("no samples: write the runs of a boot with commas between them and boots with semicolons, such as '1,2;3,4'")
    return [BootRuns(k=k, values=tuple(_number(part, k) for part in boot.split(","))) for k, boot in enumerate(text.strip().rstrip(";").split(";"))]


def _number(text: str, k: int) -> float:
    where = f"boot {k + 1}"
    if not text.strip():
        raise BadSamples(f"{where}: a run has no value; write '1,2;3,4': commas between runs, semicolons between boots, a point for decimals")
    try:
        value = float(text)
    except ValueError:
        raise BadSamples(
            f"{where}: {text.strip()!r} is not a number; write '1,2;3,4': commas between runs, semicolons between boots, a point for decimals"
        ) from None
    if not math.isfinite(value):
        raise BadSamples(f"{where}: {text.strip()!r} is not a finite number; leave out what was not measured")
    return value
