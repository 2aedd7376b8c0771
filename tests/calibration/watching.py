"""How often watching a branch is wrong, and what it finds: tip after tip through what the service
decides with.

`python -m tests.calibration.watching TIPS [WORLD ...]` prints the tables of docs/statistics.md,
"From a swing to a bisection".

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
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from swingbot.core.plan.screen import (
    MetricHistory,
    SuspectedSwing,
    boots_wanted,
    screen_rule,
    suspect,
)
from swingbot.core.stats.compare import compare
from swingbot.core.stats.evidence import UNKNOWN, EvidenceThresholds, PairPrior
from swingbot.core.stats.rows import BootRuns, Rule
from swingbot.core.thresholds import CREEP_TIPS, SCREEN_BOOTS
from tests.calibration.test_detection import decide

Array = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Array]

BOOTS: Final = 3  # a side
BEFORE: Final = 110  # tips of a branch before the first that counts
TIPS: Final = 200  # of a branch that count
STEPS: Final = 10  # tips that a change of the branch stays for
PAIRS: Final = 20
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
    "0.7 %, in steps of 2 %": rounded(0.007, 0.02),
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


def judged(
    testbox: Boots, base: float, tip: float, levels: Sequence[float], rule: Rule = RULE
) -> Judged:
    """One tip, as the service takes it through stage 1. Base and tip are booted in turn."""
    past = MetricHistory(
        levels=levels, min_effect=math.log1p(rule.min_effect_pct / 100.0), first=BOOTS
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
    return Judged(alarm=suspect(final, boots, past), boots=len(boots), level=final.head.mean)


def levels_after(judged: Judged, levels: Sequence[float]) -> list[float]:
    """Levels for the next tip: older ones say nothing any more after an alarm of theirs that was
    none.
    """
    lost = judged.alarm is not None and judged.alarm.source != "base"
    return [judged.level, *(() if lost else levels)][: max(CREEP_TIPS)]


def watch(noise: Noise, branches: int, effect: float = 0.0, seed: int = 1) -> Watched:
    """Branches of a metric that nothing happens to, or (`effect`) that changes once and stays."""
    found = Watched()
    for branch in range(branches):
        rng = np.random.default_rng([seed, branch])
        tips = BEFORE + (STEPS if effect else TIPS)
        testbox, levels, caught = Testbox(noise, rng, tips * 2 * SCREEN_BOOTS), list[float](), -1
        for tip in range(tips):
            late = tip - BEFORE
            now, before = (effect if late >= 0 else 0.0), (effect if late >= 1 else 0.0)
            seen = judged(testbox, before, now, levels)
            alarm = seen.alarm
            if late >= 0:
                found.tips += 1
                found.boots += 2 * seen.boots
                if alarm is not None:
                    found.suspected[alarm.source, 1 if alarm.effect > 0 else -1] += 1
                    caught = late if caught < 0 and alarm.effect * effect > 0 else caught
            levels = levels_after(seen, levels)
        found.found.append(caught)
    return found


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
    so the two stages are independent.
    """
    return sum(found.share(side=side) * passed[side] for side in (-1, 1))


def main(tips: int, names: Sequence[str]) -> None:
    print(
        "| nothing changes | suspected % | base / history / creep | stage 2 accepts %,"
        " no record / record | swings in 10 000 | boots a tip |"
    )
    print("|---|---|---|---|---|---|")
    for name in names or WORLDS:
        found = watch(WORLDS[name], max(1, tips // TIPS))
        passed = [accepted(WORLDS[name], 4 * tips, record=record) for record in (False, True)]
        sources = " / ".join(f"{100 * found.share(s):.2f}" for s in ("base", "history", "creep"))
        stage_2 = " / ".join(f"{100 * sum(p.values()):.2f}" for p in passed)
        rates = " / ".join(f"{1e4 * swings(found, p):.2f}" for p in passed)
        print(
            (
                f"| {name} | {100 * found.share():.2f} | {sources} | {stage_2} | {rates} |"
                f" {found.boots / found.tips:.2f} |"
            ),
            flush=True,
        )
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


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000, sys.argv[2:])
