"""The detection cell: how many pairs of boots stage 2 needs to accept a change of -1 % where boot
means spread by 0.5 %.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from swingbot.core.stats.evidence import UNKNOWN, EvidenceThresholds, PairPrior, sequential

NAME = "detection: -1 % at CV 0.5 %"
CV, CHANGE, MOST = 0.005, -0.01, 20
# a noise record known to +-15 % is worth as many observations as a bisection's certainty of 12
ERROR, COUNTS_FOR = (0.15, 12.0)


def pairs_of(seed: int, change: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Log differences of pairs of boots of head and base."""
    rng = np.random.default_rng([seed, 93])
    return np.asarray(change + rng.normal(0.0, CV, MOST) - rng.normal(0.0, CV, MOST))


def decided(seed: int, change: float, *, record: bool) -> int | None:
    """After how many pairs the change was accepted, with the right sign; None: never."""
    error = math.exp(float(np.random.default_rng([seed, 94]).normal(0.0, ERROR)))
    prior = PairPrior(sd=CV * math.sqrt(2) * error, df=2 * COUNTS_FOR) if record else UNKNOWN
    found = sequential(
        [float(d) for d in pairs_of(seed, change)],
        prior,
        EvidenceThresholds(min_effect=0.01, max_pairs=MOST),
    )
    return (
        found.pairs
        if found.answer == "accept" and (change == 0 or found.mean * change > 0)
        else None
    )


def row(method: str, needed: list[int | None], false: int, worlds: int) -> dict[str, Any]:
    """`pairs_for_95_pct`: so many pairs decide 95 of 100 worlds, None if twenty do not."""
    used = sorted(n for n in needed if n is not None)
    enough = math.ceil(0.95 * worlds)
    mean = float(np.mean([n or MOST for n in needed]))
    return {
        "cell": NAME,
        "method": method,
        "worlds": worlds,
        "right_pct": 100 * sum(n <= 16 for n in used) / worlds,
        "right_in_12_pct": 100 * sum(n <= 12 for n in used) / worlds,
        "claims": len(used),
        "pairs": mean,
        "pairs_for_95_pct": used[enough - 1] if len(used) >= enough else None,
        "false_alarms_pct": 100 * false / worlds,
        "boots": 2 * mean,
        "runs": 2 * mean,
        "hours": 2 * mean * 2 / 60,
        "bound_runs": None,
        "ratio": None,
    }


def rows(first_seed: int, worlds: int) -> list[dict[str, Any]]:
    """swingbot without and with a noise record, and a Welch test on a fixed number of boots that
    was planned for 95 % power.
    """
    seeds = range(first_seed, first_seed + worlds)
    table = []
    for method, record in (("ours, no record", False), ("ours, noise record", True)):
        false = sum(decided(s, 0.0, record=record) is not None for s in seeds)
        table.append(row(method, [decided(s, CHANGE, record=record) for s in seeds], false, worlds))
    planned = {change: [_welch(s, change, 12) for s in seeds] for change in (CHANGE, 0.0)}
    table.append(
        row("Welch, 12 a side", planned[CHANGE], sum(n is not None for n in planned[0.0]), worlds)
    )
    return table


def _welch(seed: int, change: float, boots: int) -> int | None:
    rng = np.random.default_rng([seed, 95])
    p = ttest_ind(
        change + rng.normal(0.0, CV, boots), rng.normal(0.0, CV, boots), equal_var=False
    ).pvalue
    return boots if p < 0.005 else None


def line(found: dict[str, Any]) -> str:
    needed = found["pairs_for_95_pct"]
    return (
        f"{found['cell']}, {found['method']:<18} {found['worlds']:>5} worlds:"
        f" in 12 pairs {found['right_in_12_pct']:.1f} %, in 16 {found['right_pct']:.1f} %,"
        f" 95 % after {needed or f'more than {MOST}'}; mean {found['pairs']:.1f};"
        f" equal kernels accepted {found['false_alarms_pct']:.2f} %"
    )
