"""Samples of /proc/meminfo and of zram's mm_stat while a benchmark ran, in bytes.

The first sample was taken before the benchmark started and is left out. mm_stat:
Documentation/admin-guide/blockdev/zram.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from swingbot_jobs.reading import snapshots
from swingbot_jobs.reading.result import ParseError

# orig_data_size, compr_data_size, mem_used_total; six or seven more follow
ZRAM = re.compile(
    r"zram:\s+(?P<stored>\d{1,18})\s+\d{1,18}\s+(?P<used>\d{1,18})(?:\s+\d{1,18}){4,8}\s*"
)


def series(text: str) -> list[dict[str, float]]:
    """Return every sample, in bytes."""
    return snapshots.read_snapshots(text, _sample)


def parse(files: Mapping[str, str], params: Mapping[str, str]) -> dict[str, float | list[float]]:
    """Return mean and maximum of each line. Raises ParseError without a sample during the run."""
    samples = series(files.get("memory-sampler", ""))[1:]
    if not samples:
        raise ParseError("memory-sampler printed only the sample before the run: it was too short")
    found: dict[str, float | list[float]] = {"samples": float(len(samples))}
    means = snapshots.stood(samples)
    fullest = max(samples, key=lambda sample: sample.get("zram.stored", 0))
    if not fullest.get("zram.stored"):
        means.pop("zram.used", None)
    elif fullest["zram.used"] > 0:
        found["zram.ratio"] = fullest["zram.stored"] / fullest["zram.used"]
    means.pop("zram.stored", None)
    for key, mean in means.items():
        found[f"{key}.mean"] = mean
        found[f"{key}.max"] = max(sample[key] for sample in samples)
    return found


def _sample(lines: Iterable[str]) -> dict[str, float]:
    lines = list(lines)
    found = {key: value * 1024 for key, value in snapshots.key_values(lines).items()}
    for of, free, used in (("MemTotal", "MemFree", "Used"), ("SwapTotal", "SwapFree", "SwapUsed")):
        if of in found and free in found:
            found[used] = found.pop(of) - found.pop(free)
    zrams = list(filter(None, map(ZRAM.fullmatch, lines)))
    if zrams:
        found |= {f"zram.{name}": sum(int(z[name]) for z in zrams) for name in ("stored", "used")}
    return found
