"""How often watching a branch is wrong, and what it finds: tip after tip through what the service
decides with.

`python -m tests.calibration.watching TIPS [WORLD ...]` prints the tables of
docs/calibration-results.md, "Watching a branch"; `TIPS spreads` instead of worlds the one about
the spread between boots.

A branch has levels that are reset after an alarm, as the service does it;
a tip gets the boots that `boots_wanted` asks for and is judged by `suspect`.
`tests/calibration/test_watching.py` shows that the use cases decide the same.
Swings are those that both stages let through: stage 1 counted here, stage 2 on pairs of its own,
since its boots are fresh.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from swingbot.core.bisect.thresholds import SPREAD_PAIRS, SPREAD_STEP_ALPHA
from swingbot.core.plan.screen import (
    MetricHistory,
    SuspectedSwing,
    TipBoots,
    boots_wanted,
    screen_rule,
    suspect,
)
from swingbot.core.stats.compare import compare
from swingbot.core.stats.evidence import UNKNOWN, EvidenceThresholds, PairPrior
from swingbot.core.stats.rows import BootRuns, Rule
from swingbot.core.stats.tip_spreads import TipSpread, latest_change, tip_spread
from swingbot.core.thresholds import CREEP_TIPS, SCREEN_BOOTS
from tests.calibration.score import wilson
from tests.calibration.test_detection import decide
from tests.calibration.test_recorded import KERNELS, limit

Array = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Array]

BOOTS: Final = 3  # a side
BEFORE: Final = 110  # tips of a branch before the first that counts
TIPS: Final = 200  # of a branch that count
STEPS: Final = 10  # tips that a change of the branch stays for
COARSE: Final = "0.7 %, in steps of 2 %"
SPREAD_LIMIT: Final = 40  # tips after which a change of the spread counts as not found
PAIRS: Final = 20
SOURCES: Final = ("base", "history", "creep", "spread")
RULE: Final = Rule(better="higher", min_effect_pct=1.0)
MIN_EFFECT: Final = math.log1p(0.01)
RECORD_DF: Final = 24.0


def gauss(sd: float) -> Noise:
    return lambda rng, shape: rng.normal(0.0, sd, shape)


def modes(share: float, apart: float, sd: float) -> Noise:
    return lambda rng, shape: rng.normal(0.0, sd, shape) - apart * (rng.random(shape) < share)


def student(sd: float) -> Noise:
    return lambda rng, shape: sd * rng.standard_t(2, shape)


def heavy(sd: float) -> Noise:
    """One boot in ten loses an exponential of mean 6 sd."""
    return lambda rng, shape: (
        rng.normal(0.0, sd, shape)
        - np.where(rng.random(shape) < 0.1, rng.exponential(6.0 * sd, shape), 0.0)
    )


def rounded(sd: float, step: float) -> Noise:
    return lambda rng, shape: np.log(np.round(np.exp(rng.normal(0.0, sd, shape)) / step) * step)


def wander(sd: float, alike: float) -> Noise:
    """The testbox wanders: boot after boot (last axis) a first-order autoregression of this
    standard deviation.
    """

    def drawn(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        fresh = rng.normal(0.0, sd, shape)
        out = np.empty(shape)
        out[..., 0] = fresh[..., 0]
        for n in range(1, shape[-1]):
            out[..., n] = alike * out[..., n - 1] + math.sqrt(1.0 - alike**2) * fresh[..., n]
        return out

    return drawn


WORLDS: Final[dict[str, Noise]] = {
    "0.5 %": gauss(0.005),
    "2 %": gauss(0.02),
    "two modes, 30 %, 4 sd apart": modes(0.3, 0.04, 0.01),
    "two modes, 50 %, 10 sd apart": modes(0.5, 0.10, 0.01),
    "1 %, 3 % of boots at 40 %": modes(0.03, 0.9, 0.01),
    "t with 2 df, 1 %": student(0.01),
    "2 %, heavy tails": heavy(0.02),
    COARSE: rounded(0.007, 0.02),
    "testbox wanders, rho 0.8, 1 %": wander(0.01, 0.8),
    "testbox wanders, rho 0.95, 2 %": wander(0.02, 0.95),
}
CHANGES: Final[tuple[tuple[str, float], ...]] = (
    ("2 %", -0.05),
    ("2 %", -0.03),
    ("0.5 %", -0.01),
    ("2 %, heavy tails", -0.05),
    ("testbox wanders, rho 0.95, 2 %", -0.05),
)


@dataclass(kw_only=True)
class Watched:
    tips: int = 0
    suspected: Counter[tuple[str, int]] = field(default_factory=Counter)  # by source and sign
    boots: int = 0  # of both sides
    found: list[int] = field(default_factory=list)  # tips after the change, by branch; -1: never

    def share(self, source: str | None = None, side: int | None = None) -> float:
        chosen = sum(
            n
            for (s, sign), n in self.suspected.items()
            if source in (None, s) and side in (None, sign)
        )
        return chosen / max(self.tips, 1)

    def found_by(self, tips: int) -> float:
        return sum(0 <= n < tips for n in self.found) / max(len(self.found), 1)


class Testbox:
    """Boots of kernels of given levels, one after the other on one machine."""

    def __init__(self, noise: Noise, rng: np.random.Generator, boots: int) -> None:
        self._drawn, self._next = noise(rng, (1, boots))[0], 0

    def boot(self, level: float) -> float:
        self._next += 1
        return math.exp(level + float(self._drawn[self._next - 1]))


class Boots(Protocol):
    """A machine that boots kernels of given levels, one after the other."""

    def boot(self, level: float) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Judged:
    alarm: SuspectedSwing | None
    boots: int  # a side
    level: float  # of the tip, for the tips after it
    spread: TipBoots  # likewise


def judged(
    testbox: Boots,
    base: float,
    tip: float,
    levels: Sequence[float],
    spreads: Sequence[TipBoots],
    rule: Rule = RULE,
) -> Judged:
    """One tip, as the service takes it through stage 1. Base and tip are booted in turn."""
    past = MetricHistory(
        levels=levels,
        spreads=spreads,
        min_effect=math.log1p(rule.min_effect_pct / 100.0),
        first=BOOTS,
    )
    sides: tuple[list[BootRuns], list[BootRuns]] = ([], [])
    wanted: int | None = BOOTS
    while wanted is not None:
        for k in range(len(sides[1]), wanted):
            for side, level in zip(sides, (base, tip), strict=True):
                side.append(BootRuns(k=k, values=(testbox.boot(level),)))
        boots = [value for boot in sides[1] for value in boot.values]
        row = compare(*sides, screen_rule(rule, past))
        wanted = boots_wanted(row, boots, len(boots), past)
    final = compare(*sides, rule)
    assert final.head.mean is not None
    return Judged(
        alarm=suspect(final, boots, past),
        boots=len(boots),
        level=final.head.mean,
        spread=TipBoots(mean=final.head.mean, stddev=final.head.stddev, boots=final.head.boots),
    )


def levels_after(judged: Judged, levels: Sequence[float]) -> list[float]:
    """Levels for the next tip: older ones say nothing any more after an alarm of theirs that was
    none.
    """
    lost = judged.alarm is not None and judged.alarm.source in ("history", "creep")
    return [judged.level, *(() if lost else levels)][: max(CREEP_TIPS)]


def spreads_after(judged: Judged, spreads: Sequence[TipBoots]) -> list[TipBoots]:
    """Spreads for the next tip: only an alarm about the spread makes older ones obsolete."""
    lost = judged.alarm is not None and judged.alarm.source == "spread"
    return [judged.spread, *(() if lost else spreads)][: max(CREEP_TIPS)]


def watch(
    noise: Noise, branches: int, effect: float = 0.0, seed: int = 1, *, record: bool = False
) -> Watched:
    """Branches of a metric that nothing happens to, or (`effect`) that changes once and stays.

    `record`: each branch has a noise record of KERNELS kernels, which says what two modes explain.
    """
    found = Watched()
    for branch in range(branches):
        rng = np.random.default_rng([seed, branch])
        tips = BEFORE + (STEPS if effect else TIPS)
        testbox, levels, caught = Testbox(noise, rng, tips * 2 * SCREEN_BOOTS), list[float](), -1
        spreads: list[TipBoots] = []
        known = limit(lambda rng, boots: noise(rng, (1, boots))[0], rng, KERNELS)
        rule = replace(RULE, sd_at_most=known) if record else RULE
        for tip in range(tips):
            late = tip - BEFORE
            now, before = (effect if late >= 0 else 0.0), (effect if late >= 1 else 0.0)
            seen = judged(testbox, before, now, levels, spreads, rule)
            alarm = seen.alarm
            if late >= 0:
                found.tips += 1
                found.boots += 2 * seen.boots
                if alarm is not None:
                    found.suspected[alarm.source, 1 if alarm.effect > 0 else -1] += 1
                    caught = late if caught < 0 and alarm.effect * effect > 0 else caught
            levels, spreads = levels_after(seen, levels), spreads_after(seen, spreads)
        found.found.append(caught)
    return found


def spread_alarms(noise: Noise, tips: int, seed: int = 3) -> int:
    """Alarms about the spread between boots of a branch that nothing happens to: base and tip
    booted in turn, BOOTS a side."""
    drawn = np.exp(noise(np.random.default_rng([seed, 0]), (1, 2 * BOOTS * tips))[0])
    before: list[TipSpread] = []
    alarms = 0
    for tip in drawn.reshape(tips, BOOTS, 2)[:, :, 1]:
        before = [*before, _spread(tip)][-1 - max(CREEP_TIPS) :]
        if latest_change(before) is not None:
            alarms, before = alarms + 1, before[-1:]
    return alarms


def spread_found(name: str, times: float, branches: int, seed: int = 4) -> list[int | None]:
    """Tips after which boots that spread `times` as far raise an alarm, by branch; None: more than
    SPREAD_LIMIT."""
    found: list[int | None] = []
    for branch in range(branches):
        rng = np.random.default_rng([seed, branch])
        tips = BEFORE + SPREAD_LIMIT
        drawn = WORLDS[name](rng, (1, 2 * BOOTS * tips))[0].reshape(tips, BOOTS, 2)[:, :, 1]
        drawn[BEFORE:] *= times
        if name == COARSE:  # the scale is as coarse as before
            drawn[BEFORE:] = rounded(0.007 * times, 0.02)(rng, (SPREAD_LIMIT, BOOTS))
        spreads = [_spread(tip) for tip in np.exp(drawn)]
        found.append(
            next(
                (
                    late
                    for late in range(1, SPREAD_LIMIT + 1)
                    if latest_change(spreads[late + BEFORE - 101 : late + BEFORE]) is not None
                ),
                None,
            )
        )
    return found


def _spread(boots: Array) -> TipSpread:
    spread = tip_spread(float(boots.mean()), float(boots.std(ddof=1)), len(boots))
    assert spread is not None
    return spread


def accepted(noise: Noise, count: int, *, record: bool, seed: int = 2) -> dict[int, float]:
    """Share of alarms about nothing, by sign, that stage 2 accepts: pairs of boots one after the
    other, the order alternating.
    """
    z = noise(np.random.default_rng([seed, 0]), (count, 2 * PAIRS)).reshape(count, PAIRS, 2)
    pairs = (z[:, :, 1] - z[:, :, 0]) * np.where(np.arange(PAIRS) % 2 == 0, 1.0, -1.0)
    prior = PairPrior(sd=float(np.std(pairs)), df=RECORD_DF) if record else UNKNOWN
    return {
        side: float(
            decide(
                pairs,
                prior,
                EvidenceThresholds(min_effect=MIN_EFFECT, direction=-1 if side < 0 else 1),
            )[0].mean()
        )
        for side in (-1, 1)
    }


def swings(found: Watched, passed: dict[int, float]) -> float:
    """False swings a tip, both directions: the boots of stage 2 are fresh,
    so the two stages are independent. `passed` is of changes of the level.
    """
    levels = sum(
        found.share(source, side) * passed[side]
        for source in SOURCES
        for side in (-1, 1)
        if source != "spread"
    )
    return levels + found.share("spread") * len(SPREAD_PAIRS) * SPREAD_STEP_ALPHA


def spreads(tips: int) -> None:
    """Print how often the spread alone raises an alarm, and after how many tips."""
    print("| noise | alarms in 10 000 tips | twice: tips until found, % | 3 times | 5 times |")
    print("|---|---|---|---|---|")
    for name, noise in WORLDS.items():
        cells = []
        for times in (2.0, 3.0, 5.0):
            found = spread_found(name, times, max(20, tips // 1000))
            late = sorted(tip for tip in found if tip is not None)
            middle = f"{late[len(late) // 2]}" if late else "-"
            cells.append(f"{middle}, {100 * len(late) / len(found):.0f} %")
        alarms = 1e4 * spread_alarms(noise, tips) / tips
        print(f"| {name} | {alarms:.2f} | " + " | ".join(cells) + " |", flush=True)


def row(name: str, tips: int, *, record: bool) -> str:
    """A row of the first table; intervals are those of the share of tips that is suspected."""
    found = watch(WORLDS[name], max(1, tips // TIPS), record=record)
    passed = accepted(WORLDS[name], 4 * tips, record=record)
    low, high = wilson(sum(found.suspected.values()), found.tips)
    share, rate = found.share(), 1e4 * swings(found, passed)
    factor = rate / share if share else 1e4 * sum(passed.values()) / 2
    cells = [
        name,
        "yes" if record else "no",
        str(found.tips),
        f"{100 * share:.2f} ({100 * low:.2f} .. {100 * high:.2f})",
        " / ".join(f"{100 * found.share(s):.2f}" for s in SOURCES),
        f"{100 * sum(passed.values()):.2f}",
        f"{rate:.2f} ({low * factor:.2f} .. {high * factor:.2f})",
        f"{found.boots / found.tips:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main(tips: int, names: Sequence[str]) -> None:
    print(
        "| nothing changes | record | tips | suspected % (95 %) | base / history / creep / spread |"
        " stage 2 accepts % | swings in 10 000 (95 %) | boots a tip |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in names or WORLDS:
        for record in (False, True):
            print(row(name, tips, record=record), flush=True)
    print("\n| change that stays | suspected at once % | within 3 tips | within 10 | boots a tip |")
    print("|---|---|---|---|---|")
    for name, effect in CHANGES:
        if names and name not in names:
            continue
        found = watch(WORLDS[name], max(1, tips // 20), effect)
        shares = " | ".join(f"{100 * found.found_by(n):.1f}" for n in (1, 3, 10))
        print(
            f"| {100 * effect:+.0f} %, {name} | {shares} | {found.boots / found.tips:.2f} |",
            flush=True,
        )


if __name__ == "__main__" and sys.argv[2:] == ["spreads"]:
    spreads(int(sys.argv[1]))
elif __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000, sys.argv[2:])
