"""How often a path may be taken that no run of a side has shown.

n values without one exclude, at 95 %, a share of more than 1 - 0.05^(1/n): about 3 in n. Runs of a
boot may take it together, so their number and that of the boots each give a bound.
"""

from __future__ import annotations

from swingbot.core.text.numbers import rounded_up
from swingbot.core.thresholds import INTERVAL_ALPHA


def largest_unseen(values: int) -> float:
    """The largest share that so many values without one leave possible."""
    return float(1.0 - INTERVAL_ALPHA ** (1.0 / max(values, 1)))


def excluded(boots: int, runs: int, off: str) -> str:
    """Say which paths are excluded by so many boots and runs, none of them off by `off`."""
    of_boots = f"{_percent(largest_unseen(boots))} of boots"
    of_runs = f"{_percent(largest_unseen(runs))} of runs or " if runs > boots else ""
    return f"no path that is {off} off in more than {of_runs}{of_boots}"


def _percent(share: float) -> str:
    return f"{rounded_up(100.0 * share):g} %"
