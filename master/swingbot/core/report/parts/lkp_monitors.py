"""Select and order the numbers of monitors that LKP's table shows below the benchmark's.

The rule is that of `lkp ncompare`: it compares the runs of both sides and ignores which boot they
belong to. It is a filter for readers and not a verdict. Of thousands of numbers, some pass by
chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Values = Sequence[float]  # one per run

_MOST: Final = 25  # maximum rows per monitor, largest changes first; a profile has hundreds
_FEWEST: Final = 3  # minimum runs on one side; LKP ignores anything below
_SMALL: Final = 1.01  # ratio of medians up to which a change is hidden
_MODEST: Final = 1.05  # the same for metrics that are not in _PRECISE
_PRECISE: Final = ("perf-stat.", "proc-vmstat.", "vmstat.", "time.")
_CAP: Final = 5.0  # larger ratios, and ratios to a median of 0, rank equal
# Lower counts differ by chance and by single events. LKP uses 1000 to 10000, for runs of minutes.
_LEAST: Final = 100.0
_COUNTS: Final = ("interrupts.", "meminfo.", "numa-", "proc-vmstat.", "softirqs.")
# LKP never prints these: snapshots of free memory, and benchmark results of disturbed runs.
_LEFT_OUT: Final = ("buddyinfo.",)
_BESIDE: Final = "beside"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRows:
    """Metrics in table order, and for each monitor the number of changed metrics left out."""

    metrics: tuple[str, ...]
    more: Mapping[str, int]


def monitor_rows(monitors: Mapping[str, tuple[Values, Values]]) -> MonitorRows:
    """Select metrics of one unit job on one testbox; `monitors` maps them to values of both sides.

    Monitors with few changes come first, as in LKP's tables; metrics of a monitor are sorted by
    name.
    """
    families: dict[str, list[str]] = {}
    for metric, (base, head) in monitors.items():
        if shown(metric, base, head):
            families.setdefault(metric.partition(".")[0], []).append(metric)
    metrics, more = [], {}
    for family, changed_metrics in sorted(
        families.items(), key=lambda item: (len(item[1]), item[0])
    ):
        ranked = sorted(
            changed_metrics, key=lambda metric: (-_size(metric, *monitors[metric]), metric)
        )
        metrics += sorted(ranked[:_MOST])
        if len(changed_metrics) > _MOST:
            more[family] = len(changed_metrics) - _MOST
    return MonitorRows(metrics=tuple(metrics), more=more)


def shown(metric: str, base: Values, head: Values) -> bool:
    """Return True if LKP would print the metric: it changed enough and counts enough events."""
    if metric.startswith(_LEFT_OUT) or metric.split(".")[1:2] == [_BESIDE]:
        return False
    if not changed(base, head):
        return False
    if metric.startswith("perf-profile"):
        return True
    if metric.startswith(_COUNTS) and max(*base, *head) < _LEAST:
        return False
    return _ratio(base, head) > (_SMALL if metric.startswith(_PRECISE) else _MODEST)


def changed(base: Values, head: Values) -> bool:
    """Return True if no run of either side reaches the median of the other, which is LKP's test.

    False if both sides have fewer than three runs, or one has none: a missing value is not 0.
    """
    if not base or not head or max(len(base), len(head)) < _FEWEST:
        return False
    one, other = _trimmed(base), _trimmed(head, most=1 if len(base) <= _FEWEST else 3)
    return _above(one, other) or _above(other, one)


def _above(high: Values, low: Values) -> bool:
    return min(high) > _median(low) and _median(high) > max(low)


def _trimmed(values: Values, most: int = 3) -> Values:
    """Sort the values, and drop one run at each end for every 32 runs, at most `most`."""
    ends = min(most, len(values) >> 5)
    return sorted(values)[ends : len(values) - ends]


def _median(values: Values) -> float:
    """Return the median as LKP defines it: the upper one of an even number of values."""
    return sorted(values)[len(values) // 2]


def _ratio(base: Values, head: Values) -> float:
    low, high = sorted((_median(base), _median(head)))
    return min(high / low, _CAP) if low > 0 else _CAP


def _size(metric: str, base: Values, head: Values) -> float:
    """Return the rank of a change within its monitor: difference for shares, ratio otherwise."""
    if metric.endswith("%") or metric.startswith("perf-profile"):
        return abs(_median(head) - _median(base))
    return _ratio(base, head)
