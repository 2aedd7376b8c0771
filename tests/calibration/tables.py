"""Tables of equal and unequal kernels: do their rows hold together, and what does that cost?

The worlds share no code with the comparison. `python -m tests.calibration.tables 10000 [WORLD ...]`
prints the table, seeded.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.stats.compare import compare
from swingbot.core.stats.family import compare_family
from swingbot.core.stats.looks import Look, keyed
from swingbot.core.stats.rows import BootRuns, Rule

Logs = np.ndarray[tuple[int, ...], np.dtype[np.float64]]  # arms x boots
Draw = Callable[[np.random.Generator, int, int], Logs]
Pairs = list[tuple[int, int]]

SD: Final = 0.02
RECORDED: Final = json.loads((Path(__file__).parent / "vm-tcg.json").read_text())["boots"]


@dataclass(frozen=True, kw_only=True)
class World:
    draw: Draw
    sd: float = SD  # of one boot, for the size of effects
    paired: bool = False
    humps: bool = False  # boots fall into modes, and the rule does not know


def _gauss(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    return rng.normal(0, SD, (arms, boots))


def _student(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    return 0.01 * rng.standard_t(2, (arms, boots))


def _wild(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    """One boot in ten loses six spreads on average."""
    off = rng.exponential(6 * SD, (arms, boots)) * (rng.random((arms, boots)) < 0.1)
    return _gauss(rng, arms, boots) - off


def _loud_arm(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    logs = _gauss(rng, arms, boots)
    logs[rng.integers(arms)] *= 3.0
    return logs


def _loud_first(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    logs = _gauss(rng, arms, boots)
    logs[0] *= 3.0
    return logs


def _all_unlike(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    """Spreads of arms differ by a factor of 2 either way."""
    return _gauss(rng, arms, boots) * np.exp(rng.normal(0, 0.5, (arms, 1)))


def _wandering(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    """A testbox whose level wanders (rho 0.98 from one boot to the next, 2 %).

    Blocks of one boot of each arm, in random order.
    """
    steps = rng.normal(0, SD * math.sqrt(1 - 0.98**2), arms * boots)
    level, at = rng.normal(0, SD), np.empty(arms * boots)
    for i, step in enumerate(steps):
        level = 0.98 * level + step
        at[i] = level
    logs = _gauss(rng, arms, boots)
    for k in range(boots):
        logs[rng.permutation(arms), k] += at[k * arms : (k + 1) * arms]
    return logs


def _modes(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    """Half of the boots are ten spreads lower."""
    return rng.normal(0, 0.01, (arms, boots)) - 0.1 * (rng.random((arms, boots)) < 0.5)


def _few_low(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    """Three boots in ten are four spreads lower."""
    return rng.normal(0, 0.01, (arms, boots)) - 0.04 * (rng.random((arms, boots)) < 0.3)


def _pairs(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    """Boot k of all arms shares 3 %."""
    return rng.normal(0, 0.002, (arms, boots)) + rng.normal(0, 0.03, (1, boots))


def _pairs_loud(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    own = rng.normal(0, 0.002, (arms, boots))
    own[rng.integers(arms)] *= 3.0
    return own + rng.normal(0, 0.03, (1, boots))


def _recorded(rng: np.random.Generator, arms: int, boots: int) -> Logs:
    """Boots of page-fault as an emulated testbox gave them on a busy host, drawn again."""
    means = np.log(np.mean(RECORDED["page-fault.per_process_ops"], axis=1))
    return np.asarray(rng.choice(means, (arms, boots)), dtype=np.float64)


WORLDS: Final[dict[str, World]] = {
    "boots 2 %": World(draw=_gauss),
    "boots t with 2 df": World(draw=_student, sd=0.02),
    "10 % wild boots": World(draw=_wild),
    "one arm 3 x as noisy": World(draw=_loud_arm),
    "first arm 3 x as noisy": World(draw=_loud_first),
    "spreads differ 0.5..2 x": World(draw=_all_unlike),
    "wandering testbox": World(draw=_wandering, sd=SD * 1.2),
    "modes 50 %, 10 sd apart": World(draw=_modes, humps=True),
    "modes 30 %, 4 sd apart": World(draw=_few_low, humps=True),
    "recorded: vm-tcg": World(draw=_recorded, sd=0.35, humps=True),
    "pairs": World(draw=_pairs, sd=0.002, paired=True),
    "pairs, one arm 3 x as noisy": World(draw=_pairs_loud, sd=0.002, paired=True),
}
EFFECTS: Final = ("none", "step", "up and back")


@dataclass(kw_only=True)
class Tally:
    """Counts over tables; of power over the rows that do change."""

    tables: int = 0
    wrong: int = 0  # tables with a row whose direction is not the true one, in any look
    missed: int = 0  # tables with a printed interval that misses, in any look
    rows: int = 0
    changed: int = 0
    seen: int = 0
    seen_alone: int = 0  # each row by itself
    seen_bonferroni: int = 0  # each row by itself at alpha / rows
    tables_alone: int = 0  # that were also judged row by row
    wrong_alone: int = 0  # of these
    missed_alone: int = 0


def pairs_of(rule: str, arms: int) -> Pairs:
    return [(i - 1 if rule == "above" else 0, i) for i in range(1, arms)]


def effects_of(kind: str, arms: int, size: float) -> Logs:
    """The true log level of each arm."""
    levels = np.zeros(arms)
    if kind == "step":
        levels[arms // 2 :] = -size
    elif kind == "up and back":
        levels[arms // 3 + 1 : max(2 * arms // 3, arms // 3 + 2)] = size
    return levels


def size_of(world: World, boots: int) -> float:
    """A change that a comparison of two kernels shows in most cases."""
    own = boots - 1 if world.paired else 2 * boots - 2
    needed = {2: 20.0, 4: 7.0, 8: 5.0}.get(own, 4.0)
    return needed * world.sd * math.sqrt(2.0 / boots)


def tally(
    world: World,
    rule: str,
    arms: int,
    boots: int,
    tables: int,
    *,
    effect: str = "none",
    seed: int = 0,
    alone: bool = False,
    looks: int = 1,
    stated: int = 1,
) -> Tally:
    """Judge tables whose rows change by `effect`, any change counting. `alone`: also row by row.

    Each look adds `boots` boots of each arm; its request stated `stated` looks.
    """
    rng = np.random.default_rng([seed, arms, boots])
    judge = Rule(better="higher", min_effect_pct=0.0, paired=world.paired, unimodal=not world.humps)
    pairs, levels = pairs_of(rule, arms), effects_of(effect, arms, size_of(world, boots))
    truth = [float(levels[b] - levels[a]) for a, b in pairs]
    found = Tally()
    for _ in range(tables):
        drawn = boots_of(world.draw(rng, arms, boots * looks) + levels[:, None])
        _count(found, _looks(drawn, pairs, judge, looks, stated), truth)
        if alone:
            _count_alone(found, drawn, pairs, judge, truth)
    return found


def boots_of(logs: Logs) -> list[list[BootRuns]]:
    return [
        [BootRuns(k=k, values=(float(v),)) for k, v in enumerate(row)] for row in 100 * np.exp(logs)
    ]


def _looks(
    arms: Sequence[Sequence[BootRuns]], pairs: Pairs, rule: Rule, looks: int, stated: int
) -> list[list[ComparisonRow]]:
    """Judge the same table again and again, with as many more boots each time."""
    boots = len(arms[0]) // looks
    judged: list[list[ComparisonRow]] = []
    for number in range(1, looks + 1):
        earlier = {keyed(row): row for row in judged[-1]} if judged else {}
        look = Look(number=number, stated=stated, earlier=earlier)
        rows = compare_family([arm[: boots * number] for arm in arms], pairs, look.rule(rule))
        named = [replace(row, arm=arm) for (_, arm), row in zip(pairs, rows, strict=True)]
        judged.append([look.admitted(row, keyed(row)) for row in named])
    return judged


def _count(found: Tally, looks: Sequence[Sequence[ComparisonRow]], truth: Sequence[float]) -> None:
    rows = looks[-1]
    every = [(row, t) for look in looks for row, t in zip(look, truth, strict=True)]
    found.tables += 1
    found.rows += len(rows)
    found.wrong += any(_wrong(row, t) for row, t in every)
    found.missed += any(_misses(row, t) for row, t in every)
    found.changed += sum(t != 0 for t in truth)
    found.seen += sum(t != 0 and row.changed for row, t in zip(rows, truth, strict=True))


def _count_alone(
    found: Tally,
    arms: Sequence[Sequence[BootRuns]],
    pairs: Pairs,
    rule: Rule,
    truth: Sequence[float],
) -> None:
    found.tables_alone += 1
    rows = [compare(arms[a], arms[b], rule) for a, b in pairs]
    strict = replace(rule, alpha=rule.alpha / len(pairs))
    found.wrong_alone += any(_wrong(row, t) for row, t in zip(rows, truth, strict=True))
    found.missed_alone += any(_misses(row, t) for row, t in zip(rows, truth, strict=True))
    for (a, b), row, t in zip(pairs, rows, truth, strict=True):
        if t != 0:
            found.seen_alone += row.changed
            found.seen_bonferroni += row.changed and compare(arms[a], arms[b], strict).changed


def _wrong(row: ComparisonRow, truth: float) -> bool:
    return row.changed and (row.effect or 0.0) * truth <= 0


def _misses(row: ComparisonRow, truth: float) -> bool:
    if row.interval_pct is None:
        return False
    low, high = row.interval_pct
    return not low - 1e-9 <= 100 * math.expm1(truth) <= high + 1e-9


HEADER: Final = (
    "| noise | rule | arms | boots | effect | tables | wrong direction % of tables | alone % "
    "| 95 % intervals all hold % | alone % | seen % | alone % | Bonferroni % |"
)


def line(name: str, rule: str, arms: int, boots: int, effect: str, found: Tally) -> str:
    def share(n: int, of: int, digits: int = 1) -> str:
        return f"{100 * n / of:.{digits}f}" if of else "-"

    cells = [
        name,
        rule,
        str(arms),
        str(boots),
        effect,
        str(found.tables),
        share(found.wrong, found.tables, 2),
        share(found.wrong_alone, found.tables_alone, 2),
        share(found.tables - found.missed, found.tables),
        share(found.tables_alone - found.missed_alone, found.tables_alone),
        share(found.seen, found.changed),
        *(
            share(n, found.changed if found.tables_alone else 0)
            for n in (found.seen_alone, found.seen_bonferroni)
        ),
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.tables", description=__doc__)
    parser.add_argument("tables", type=int, help="tables in a cell")
    parser.add_argument("worlds", nargs="*", help="only worlds whose name contains one of these")
    parser.add_argument("--arms", type=int, nargs="+", default=[2, 4, 8, 40])
    parser.add_argument("--boots", type=int, nargs="+", default=[3, 5, 10])
    parser.add_argument("--rules", nargs="+", default=["above", "first"])
    parser.add_argument("--effects", nargs="+", default=list(EFFECTS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--looks", type=int, default=1, help="each adds --boots to each arm")
    parser.add_argument("--stated", type=int, default=1, help="looks stated in the request")
    parser.add_argument("--alone", action="store_true", help="also each row by itself")
    options = parser.parse_args()
    os.nice(10)
    chosen = {
        n: w for n, w in WORLDS.items() if not options.worlds or any(o in n for o in options.worlds)
    }
    print(HEADER + "\n" + "|---" * (HEADER.count("|") - 1) + "|", flush=True)
    for name, world in chosen.items():
        for arms in options.arms:
            for rule in options.rules if arms > 2 else options.rules[:1]:
                for boots in options.boots:
                    for effect in options.effects:
                        found = tally(
                            world,
                            rule,
                            arms,
                            boots,
                            options.tables,
                            effect=effect,
                            seed=options.seed,
                            alone=options.alone,
                            looks=options.looks,
                            stated=options.stated,
                        )
                        print(line(name, rule, arms, boots, effect, found), flush=True)


if __name__ == "__main__":
    main()
