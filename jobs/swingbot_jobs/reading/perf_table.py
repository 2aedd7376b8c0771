"""The table of `perf stat -r N` from the counts of several runs in several boots,
as kernel developers quote it in mails.

A value is the mean over boots of the mean of their runs; numbers after `#` are computed from means.
`+-` is the standard error of the mean in percent of it, over boots (stddev of the boot means /
sqrt(boots) / mean, with boots - 1 in the stddev): the precision of the mean,
not how much runs differ. Runs of one boot are not independent; of boots of a single run each,
`+-` is what `perf stat -r` computes.

The perf of Debian 12 (6.1) prints the count of the last run instead of the mean,
and `+-` in percent of that, as its own -v shows: there this table differs from perf's and shows the
intended values. The seconds at the end, and the standard errors themselves, are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from swingbot_jobs.reading.perf_stat import RUNNING

# counts by event, as perf names it; task-clock in msec, duration_time in ns; `running_pct.<event>`
# where perf extrapolated the count
Run = Mapping[str, float]
Boot = Sequence[Run]

ELAPSED: Final = "duration_time"
CLOCKS: Final = ("task-clock", "cpu-clock")
# perf's default events in perf's order; other events follow by name.
ORDER: Final = (
    *(
        "task-clock",
        "cpu-clock",
        "context-switches",
        "cpu-migrations",
        "CPU-migrations",
        "page-faults",
        "cycles",
        "cpu-cycles",
    ),
    *(
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "instructions",
        "branches",
        "branch-misses",
        "cache-references",
        "cache-misses",
    ),
)


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean over the boots that have the event.

    `stderr_pct` is None for a single boot, and if the mean is 0.
    """

    value: float
    boots: int
    stderr_pct: float | None


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of one value per boot. Raises ValueError without a value."""
    if not values:
        raise ValueError("no boot has a count of this event")
    mean = math.fsum(values) / len(values)
    if len(values) < 2 or mean == 0:
        return Mean(mean, len(values), None)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return Mean(mean, len(values), 100 * math.sqrt(variance / len(values)) / abs(mean))


def means_of(boots: Sequence[Boot]) -> dict[str, Mean]:
    """Return means by event, in the order of the table.

    An event that some boots lack is averaged over the others; `boots` is their number.
    """
    events = {event for boot in boots for run in boot for event in run if RUNNING not in event}
    ordered = [event for event in ORDER if event in events] + sorted(events.difference(ORDER))
    return {event: mean_of(_boot_means(boots, event)) for event in ordered}


def _running(boots: Sequence[Boot], event: str) -> float:
    """Return the mean running share of the event's runs, in percent."""
    return mean_of(
        [
            math.fsum(run.get(RUNNING + event, 100.0) for run in of_boot) / len(of_boot)
            for boot in boots
            if (of_boot := [run for run in boot if event in run])
        ]
    ).value


def _boot_means(boots: Sequence[Boot], event: str) -> list[float]:
    counts = [[run[event] for run in boot if event in run] for boot in boots]
    return [math.fsum(of_boot) / len(of_boot) for of_boot in counts if of_boot]


def derived(means: Mapping[str, float]) -> dict[str, list[tuple[str, str]]]:
    """Return the numbers after `#` by event: (number, words).

    Left out if a required count is missing or 0.
    """
    by_event: dict[str, list[tuple[str, str]]] = {}
    for event in means:
        if parts := [
            part for rule in _RULES.get(event, (_rate,)) if (part := rule(event, means)) is not None
        ]:
            by_event[event] = parts
    return by_event


def perf_table(
    boots: Sequence[Boot], command: str = "", *, group: str = ",", decimal: str = "."
) -> str:
    """Return the table as text, with digits grouped by `group` and `decimal` as the decimal sign.

    Raises ValueError without runs.
    """
    runs = sum(map(len, boots))
    if not runs:
        raise ValueError("a table needs at least one run")
    means = means_of(boots)
    behind = derived({event: mean.value for event, mean in means.items()})
    words = f"{runs} run{'s' * (runs > 1)} in {len(boots)} boot{'s' * (len(boots) > 1)}"
    lines = [f" Performance counter stats for '{command}' ({words}):", ""]
    for event, mean in means.items():
        if event != ELAPSED:
            lines += _lines(event, mean, behind.get(event, []), len(boots))
            if (share := _running(boots, event)) < 100:
                lines[-1] += f"  ({share:.2f}%)"
    if ELAPSED in means:
        elapsed = means[ELAPSED]
        lines += [
            "",
            _noted(f"{elapsed.value / 1e9:18,.9f} seconds time elapsed", elapsed, len(boots)),
        ]
    signs = str.maketrans(",.", group + decimal)
    return "\n".join([*lines[:2], *(line.translate(signs) for line in lines[2:])]) + "\n"


def _lines(event: str, mean: Mean, behind: Sequence[tuple[str, str]], boots: int) -> list[str]:
    """Return one line for each number derived from the event; the last one has the `+-`."""
    # perf does not group the digits of a clock, whatever the locale.
    value = f"{mean.value:18.6f}" if event in CLOCKS else f"{mean.value:18,.0f}"
    heads = [f"{value} {event:<25}", *[" " * 44 for _ in behind[1:]]]
    parts = [
        f"{head} # {number:>8}{words}" for head, (number, words) in zip(heads, behind, strict=False)
    ] or heads
    return [*parts[:-1], _noted(parts[-1], mean, boots)]


def _noted(line: str, mean: Mean, boots: int) -> str:
    noise = f"  ( +-{mean.stderr_pct:6.2f}% )" if mean.stderr_pct is not None else ""
    few = f"  [{mean.boots} of {boots} boots]" if mean.boots < boots else ""
    return f"{line:<79}{noise}{few}".rstrip()


# --- what is derived ------------------------------------------------------------------------------

_Part = tuple[str, str] | None
_Rule = Callable[[str, Mapping[str, float]], _Part]


def _clock(means: Mapping[str, float]) -> float:
    return next((means[name] for name in CLOCKS if means.get(name)), 0.0)


def _cycles(means: Mapping[str, float]) -> float:
    return means.get("cycles") or means.get("cpu-cycles") or 0.0


def _rate(event: str, means: Mapping[str, float]) -> _Part:
    """Return the rate per second of counted CPU time, in perf's unit: above 1000 the next one."""
    clock = _clock(means)
    if not clock or event == ELAPSED:
        return None
    rate = 1e3 * means[event] / clock
    units = ["/sec", "K/sec", "M/sec", "G/sec"]
    while rate > 1000 and len(units) > 1:
        rate /= 1000
        del units[0]
    return f"{rate:.3f}", f" {units[0]}"


def _utilized(event: str, means: Mapping[str, float]) -> _Part:
    elapsed = means.get(ELAPSED, 0.0) / 1e6
    return (f"{means[event] / elapsed:.3f}", " CPUs utilized") if elapsed else None


def _frequency(event: str, means: Mapping[str, float]) -> _Part:
    clock = _clock(means)
    return (f"{means[event] / clock / 1e6:.3f}", " GHz") if clock else None


def _share(of: Callable[[Mapping[str, float]], float], words: str) -> _Rule:
    def rule(event: str, means: Mapping[str, float]) -> _Part:
        whole = of(means)
        return (f"{100 * means[event] / whole:.2f}%", f" {words}") if whole else None

    return rule


def _per_cycle(event: str, means: Mapping[str, float]) -> _Part:
    cycles = _cycles(means)
    return (f"{means[event] / cycles:.2f} ", " insns per cycle") if cycles else None


def _stalled(event: str, means: Mapping[str, float]) -> _Part:
    """Return the worse of front end and back end, as perf does."""
    stalled = max(
        means.get("stalled-cycles-frontend", 0.0), means.get("stalled-cycles-backend", 0.0)
    )
    return (
        (f"{stalled / means[event]:.2f} ", " stalled cycles per insn")
        if stalled and means[event]
        else None
    )


_RULES: Final[Mapping[str, tuple[_Rule, ...]]] = {
    "task-clock": (_utilized,),
    "cpu-clock": (_utilized,),
    "cycles": (_frequency,),
    "cpu-cycles": (_frequency,),
    "stalled-cycles-frontend": (_share(_cycles, "frontend cycles idle"),),
    "stalled-cycles-backend": (_share(_cycles, "backend  cycles idle"),),
    "instructions": (_per_cycle, _stalled),
    "branch-misses": (_share(lambda means: means.get("branches", 0.0), "of all branches"),),
    "cache-misses": (
        _share(lambda means: means.get("cache-references", 0.0), "of all cache refs"),
    ),
}
