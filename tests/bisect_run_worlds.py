"""How often `swingbot bisect run` is right, and what it costs, on simulated benchmarks:
noise is learnt from the boots, nothing is known before.

    python -m tests.bisect_run_worlds [WORLDS [CELL...]]

Prints for each cell: worlds, right (of those with a culprit: named or in a set of at most 5;
without: not reproduced), wrong names, kinds, boots. CMD is replaced by a function;
all else (journal, noise, engine) is the real thing.
"""

from __future__ import annotations

import functools
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from swingbot.app.bisect_run import result_json
from swingbot.app.bisect_run.bisector import Bisector, ProgressEvent, SearchOptions
from swingbot.app.bisect_run.command_pool import BenchmarkCommand, CommandPool
from swingbot.app.bisect_run.commit_range import CommitRange, RangeCommit
from swingbot.app.bisect_run.journal import BootRequest, BootResult, open_journal
from swingbot.app.bisect_run.repository import Repository
from swingbot.core.bisect.posterior.belief import belief
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.plan.remaining_boots import boots_left


@dataclass(frozen=True, kw_only=True)
class World:
    """A chain of commits and how each of them measures. Spreads are shares of the level."""

    commits: int = 80
    effects: Mapping[int, float] = field(default_factory=dict)
    level: float = 100.0
    run_sd: float = 0.0
    boot_sd: float = 0.0
    heavy: float = 0.0  # share of boots that lose an exponential of mean 6 spreads
    low: float = 0.0  # share of boots that are 4 spreads low
    layout_sd: float = 0.0  # between commits that change nothing
    odd: float = 0.0  # share of images that are 4 % low
    # controls of the good end, of the bad one, and of any other commit
    controls: tuple[int, int, int] = (0, 0, 0)
    runs: int = 1
    skipped: frozenset[int] = frozenset()
    flaky: float = 0.0  # share of boots that fail
    step: float = 0.0  # values are rounded to multiples of this
    offset: float = 0.0  # added to each value: levels around zero
    seed: int = 0

    def boot(self, i: int, k: int, control: str = "") -> tuple[float, ...]:
        fixed, rng = (
            random.Random(f"{self.seed} layout {control or i}"),
            random.Random(f"{self.seed} boot {i} {k}"),
        )
        level = (
            self.level
            * math.prod(1.0 + e for at, e in self.effects.items() if at <= i)
            * (1.0 + fixed.gauss(0.0, self.layout_sd))
            * (0.96 if fixed.random() < self.odd else 1.0)
        )
        if rng.random() < self.flaky:
            return ()
        spread = max(self.run_sd, self.boot_sd)
        shift = rng.gauss(0.0, self.boot_sd)
        shift -= 6.0 * spread * rng.expovariate(1.0) if rng.random() < self.heavy else 0.0
        shift -= 4.0 * spread if rng.random() < self.low else 0.0
        values = [
            level * (1.0 + shift + rng.gauss(0.0, self.run_sd)) + self.offset
            for _ in range(self.runs)
        ]
        return tuple(round(v / self.step) * self.step if self.step else v for v in values)


class WorldLab:
    """A Lab whose boots take no time."""

    def __init__(self, world: World, at: float = 0.0) -> None:
        self.world, self.queue, self.at = world, list[BootRequest](), at
        self.command = BenchmarkCommand(argv=["bench"], checkout=False, pattern=None, jobs=1)

    busy = property(lambda self: bool(self.queue))
    free = property(lambda self: not self.queue)
    under_way = property(lambda self: list(self.queue))

    def start(self, asked: BootRequest, limit: float | None) -> None:
        self.queue.append(asked)

    def next(self) -> tuple[BootResult, str | None]:
        a, i = self.queue[0], int(self.queue.pop(0).sha)
        values = () if i in self.world.skipped else self.world.boot(i, a.k, a.control)
        untestable = "125" if i in self.world.skipped else None
        self.at += 10.0
        failed = None if values or untestable else "failed"
        return BootResult(
            part=a.part,
            sha=a.sha,
            k=a.k,
            phase=a.phase,
            values=values,
            failed=failed,
            untestable=untestable,
            at=self.at,
            seconds=10.0,
            layout=a.layout,
            control=a.control,
        ), None

    def stop(self) -> None:
        self.queue.clear()


@dataclass(frozen=True, slots=True)
class Run:
    facts: result_json.Facts
    steps: int
    seconds: float
    eta: list[tuple[int, float]]  # boots so far, boots left as estimated


def a_range(commits: int) -> CommitRange:
    shas = tuple(f"{i:040d}" for i in range(commits + 1))
    return CommitRange(
        shas,
        (0.0,) + (1.0,) * commits,
        {s: RangeCommit(s, (), f"commit {i}") for i, s in enumerate(shas)},
    )


def controls_of(world: World, whole: CommitRange, idx: int) -> tuple[str, ...]:
    good, bad, other = world.controls
    many = good if idx == 0 else bad if idx == world.commits else other
    return tuple(f"{whole.shas[idx]}-{i}" for i in range(many))


def a_wish(**changes: Any) -> SearchOptions:
    plain = SearchOptions(
        policy=Policy(parallel=1),
        min_effect_pct=1.0,
        noise_pct=None,
        timeout=None,
        first_parent=True,
        paths=(),
    )
    return replace(plain, **changes)


def bisect(
    world: World,
    wanted: SearchOptions | None = None,
    *,
    eta: bool = False,
    path: Path | None = None,
) -> Run:
    """One bisection of a world to its end.

    `path`: goes on with that journal, and leaves it there.
    """
    estimates: list[tuple[int, float]] = []

    def listen(news: ProgressEvent, hunt: Bisector) -> None:
        if eta and news.booted is not None:
            state, policy = hunt.state(news.part), hunt.policy(news.part)
            estimates.append(
                (len(hunt.journal.booted), boots_left(belief(state, policy), state.noise, policy))
            )

    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as place:
        journal = open_journal(
            path or Path(place) / "log", {"cmd": ["bench"]}, restart=False, loose=frozenset()
        )
        began = time.process_time()
        lab = WorldLab(world, at=10.0 * len(journal.booted))
        found = Bisector(
            journal,
            cast(CommandPool, lab),
            cast(Repository, None),
            wanted or a_wish(),
            listen,
            functools.partial(controls_of, world),
        ).run(a_range(world.commits))
        facts = result_json.facts(found, journal.booted, "higher", "")
        journal.close()
        return Run(facts, len(journal.booted), time.process_time() - began, estimates)


def right(world: World, facts: result_json.Facts) -> bool:
    """Every culprit named and no other.

    A set of at most as many commits as were untestable around it, and two more, holds it.
    """
    named = {int(c["commit"]) for c in facts["culprits"]}
    if not world.effects:
        return bool(facts["status"] == "not_reproduced")
    if facts["status"] == "credible_set":
        return named >= set(world.effects) and len(named) <= len(world.skipped) + 2
    return facts["status"] in ("culprit", "several") and named == set(world.effects)


def wrong(world: World, facts: result_json.Facts) -> bool:
    """A claim that is false: a name that is none, or a set without any."""
    named = {int(c["commit"]) for c in facts["culprits"]}
    if facts["status"] == "credible_set":
        return not named & set(world.effects)
    return facts["status"] in ("culprit", "several") and not named <= set(world.effects)


def _cell(seed: int, **world: Any) -> World:
    """60 to 100 commits with one culprit anywhere."""
    rng = random.Random(f"cell {seed}")
    commits = world.pop("commits", rng.randint(60, 100))
    effect = world.pop("effect", None)
    culprit = rng.randint(1, commits)
    around = world.pop("around", 0)
    skipped = (
        frozenset(i for i in range(culprit - around, culprit + around) if 0 < i < commits)
        if around
        else frozenset()
    )
    return World(
        commits=commits,
        effects={culprit: effect} if effect else {},
        seed=seed,
        skipped=skipped,
        **world,
    )


CELLS: dict[str, dict[str, Any]] = {
    "run 2 %, -5 %": {"effect": -0.05, "run_sd": 0.02},
    "run 2 %, -5 %, 5 runs": {"effect": -0.05, "run_sd": 0.02, "runs": 5},
    "run 2 + boot 2 %, -5 %, 3 runs": {"effect": -0.05, "run_sd": 0.02, "boot_sd": 0.02, "runs": 3},
    "boot 2 %, +5 %": {"effect": 0.05, "boot_sd": 0.02},
    "run 2 %, -2 %": {"effect": -0.02, "run_sd": 0.02},
    "run 5 %, +20 %": {"effect": 0.20, "run_sd": 0.05},
    "run 30 %, x2": {"effect": 1.0, "run_sd": 0.3},
    "run 0.01 %, +1.5 %": {"effect": 0.015, "run_sd": 0.0001},
    "identical values, -3 %": {"effect": -0.03},
    "counts 12 -> 13": {"effect": 1 / 12, "level": 12.0, "step": 1.0},
    "heavy 2 %, -5 %": {"effect": -0.05, "run_sd": 0.02, "heavy": 0.1},
    "heavy 2 %, -18 %": {"effect": -0.18, "run_sd": 0.02, "heavy": 0.1},
    "bimodal, -10 %": {"effect": -0.10, "run_sd": 0.01, "low": 0.3},
    "layout 0.5 %, -5 %": {"effect": -0.05, "run_sd": 0.01, "layout_sd": 0.005},
    "negative values": {"effect": 0.5, "level": 10.0, "run_sd": 0.05, "offset": -40.0},
    "no change, 2 %": {"run_sd": 0.02},
    "no change, 5 %, 3 runs": {"run_sd": 0.03, "boot_sd": 0.05, "runs": 3},
    "no change, identical": {},
    "2 commits": {"effect": -0.05, "run_sd": 0.02, "commits": 2},
    "1000 commits": {"effect": -0.05, "run_sd": 0.02, "commits": 1000},
    "skipped block": {"effect": -0.08, "run_sd": 0.02, "around": 3},
    "flaky 20 %": {"effect": -0.08, "run_sd": 0.02, "flaky": 0.2},
}


def main() -> None:
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    print(f"{'cell':32} worlds  right  wrong  boots  p95   s/boot  kinds")
    for name in sys.argv[2:] or CELLS:
        runs = [
            (world, bisect(world))
            for world in (_cell(seed, **CELLS[name]) for seed in range(worlds))
        ]
        good = sum(right(w, r.facts) for w, r in runs)
        false = sum(wrong(w, r.facts) for w, r in runs)
        boots = sorted(r.steps for _, r in runs)
        cpu = sum(r.seconds for _, r in runs) / max(1, sum(boots))
        kinds = dict(Counter(r.facts["status"] for _, r in runs))
        print(
            (
                f"{name:32} {worlds:5}  {good:5}  {false:5}  {sum(boots) / worlds:5.1f} "
                f" {boots[int(0.95 * (worlds - 1))]:4}  {cpu:6.4f}  {kinds}"
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
