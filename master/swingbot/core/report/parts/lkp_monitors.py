"""Which numbers of monitors stand below the benchmark's in LKP's table, and in which order.

The rule is that of `lkp ncompare`: the runs of both sides are set against each other, boots are not told apart. It is a filter for
readers and no verdict: of thousands of numbers some pass it by chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Values = Sequence[float]  # one of each run

_MOST: Final = 25  # rows of one monitor, the largest changes; a profile has hundreds
_FEWEST: Final = 3  # runs on one side at least; LKP looks at nothing below
_SMALL: Final = 1.01  # ratio of medians up to which nothing is told
_MODEST: Final = 1.05  # the same for what is not in _PRECISE
_PRECISE: Final = ("perf-stat.", "proc-vmstat.", "vmstat.", "time.")
_CAP: Final = 5.0  # a larger ratio ranks no higher, nor does one of a median of 0
# Counts that stay below this differ by chance and by one event. LKP asks for 1000 to 10000, in runs of minutes.
_LEAST: Final = 100.0
_COUNTS: Final = ("interrupts.", "meminfo.", "numa-", "proc-vmstat.", "softirqs.")
# LKP never prints these: the state of free memory at two moments, and the benchmark's number of a run that was disturbed.
_LEFT_OUT: Final = ("buddyinfo.",)
_BESIDE: Final = "beside"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRows:
    """Metrics in the order of the table, and how many more of each monitor changed but are not in it."""

    metrics: tuple[str, ...]
    more: Mapping[str, int]


def monitor_rows(monitors: Mapping[str, tuple[Values, Values]]) -> MonitorRows:
    """Choose from the numbers of one unit job on one testbox, values of base and head by metric.

    Monitors with few changes come first, as in LKP's tables; the rows of one are sorted by name.
    """
    families: dict[str, list[str]] = {}
    for metric, (base, head) in monitors.items():
        if shown(metric, base, head):
            families.setdefault(metric.partition(".")[0], []).append(metric)
    metrics, more = [], {}
    for family, found in sorted(families.items(), key=lambda item: (len(item[1]), item[0])):
        ranked = sorted(found, key=lambda metric: (-_size(metric, *monitors[metric]), metric))
        metrics += sorted(ranked[:_MOST])
        if len(found) > _MOST:
            more[family] = len(found) - _MOST
    return MonitorRows(metrics=tuple(metrics), more=more)


def shown(metric: str, base: Values, head: Values) -> bool:
    """Whether LKP would print the number: it changed, by enough, and counts enough events."""
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
    """LKP's test: no run of either side reaches the median of the other one.

    False with fewer than three runs on both sides, and where a side has none: what is missing is not 0.
    """
    if not base or not head or max(len(base), len(head)) < _FEWEST:
        return False
    one, other = _trimmed(base), _trimmed(head, most=1 if len(base) <= _FEWEST else 3)
    return _above(one, other) or _above(other, one)


def _above(high: Values, low: Values) -> bool:
    return min(high) > _median(low) and _median(high) > max(low)


def _trimmed(values: Values, most: int = 3) -> Values:
    """Sorted, without one run at each end for every 32."""
    ends = min(most, len(values) >> 5)
    return sorted(values)[ends : len(values) - ends]


def _median(values: Values) -> float:
    """LKP's: the upper one of an even number."""
    return sorted(values)[len(values) // 2]


def _ratio(base: Values, head: Values) -> float:
    low, high = sorted((_median(base), _median(head)))
    return min(high / low, _CAP) if low > 0 else _CAP


def _size(metric: str, base: Values, head: Values) -> float:
    """For ranking within a monitor: shares by their difference, everything else by its ratio."""
    if metric.endswith("%") or metric.startswith("perf-profile"):
        return abs(_median(head) - _median(base))
    return _ratio(base, head)
