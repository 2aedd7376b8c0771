"""Are bisections right as often as they say? Seeded worlds; the table is printed (pytest -s)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from swingbot.core.bisect.state import EMULATED, NOISY, NoisePrior, Policy
from tests.simulate import Ended, SimulatedBench, a_state, bisect_to_the_end


@dataclass(frozen=True, kw_only=True)
class World:
    name: str
    bench: Callable[[int], SimulatedBench]
    bisections: int
    noise: NoisePrior
    paired: bool = False
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, kw_only=True)
class Score:
    right: list[bool]
    stated: list[float]
    boots: list[int]
    builds: list[int]
    kinds: dict[str, int]

    @property
    def z(self) -> float:
        """Of what is concluded against what is stated; Poisson-binomial."""
        spread = math.sqrt(sum(p * (1 - p) for p in self.stated))
        return (sum(self.right) - sum(self.stated)) / max(spread, 1e-9)


def score(world: World) -> Score:
    """Only conclusions that name commits state a probability; every other one counts as not right when there was a culprit."""
    result = Score(right=[], stated=[], boots=[], builds=[], kinds={})
    for seed in range(world.bisections):
        bench = world.bench(seed)
        ended = bisect_to_the_end(bench, a_state(bench, paired=world.paired, noise=world.noise), world.policy)
        kind = ended.conclusion.kind
        result.kinds[kind] = result.kinds.get(kind, 0) + 1
        result.boots.append(ended.boots)
        result.builds.append(ended.builds)
        if ended.conclusion.probability is not None and kind in ("culprit", "credible_set"):
            result.right.append(correct(bench, ended))
            result.stated.append(ended.conclusion.probability)
        elif bench.culprit is not None:
            result.right.append(correct(bench, ended))
            result.stated.append(1.0)
    named = sum(result.kinds.get(kind, 0) for kind in ("culprit", "credible_set", "several"))
    right, stated = (100 * float(np.mean(x)) if x else math.nan for x in (result.right, result.stated))
    boots, builds = float(np.mean(result.boots)), float(np.mean(result.builds))
    print(
        f"\n{world.name:34} {world.bisections:4} bisections, {named:4} named, right {right:6.2f} %, stated {stated:6.2f} %,"
        f" boots {boots:5.1f}, builds {builds:4.1f}, {result.kinds}"
    )
    return result


def correct(bench: SimulatedBench, ended: Ended) -> bool:
    return ended.conclusion.kind in ("culprit", "credible_set") and bench.culprit in ended.conclusion.members


def emulated(seed: int, *, layout: float = 0.002, none: bool = False, skips: float = 0.08, boot: float = 0.0003) -> SimulatedBench:
    """Like the icount testbox: 12..30 commits, effects of 4..20 %, four in five for the worse."""
    rng = np.random.default_rng([seed, 77])
    commits = int(rng.integers(12, 31))
    return SimulatedBench(
        commits=commits,
        culprit=None if none else int(rng.integers(1, commits + 1)),
        effect=float(rng.uniform(0.04, 0.20)) * (-1 if rng.random() < 0.8 else 1),
        layout_noise=layout,
        pert_noise=0.003,
        boot_noise=boot,
        run_noise=0.002,
        skip_rate=skips,
        seed=seed,
    )


def gaussian(seed: int, *, commits: int, boot: float, runs: int = 1, effect: float = -0.05, none: bool = False, heavy: float = 0.0) -> SimulatedBench:
    rng = np.random.default_rng([seed, 78])
    culprit = None if none else int(rng.integers(1, commits + 1))
    return SimulatedBench(commits=commits, culprit=culprit, effect=effect, boot_noise=boot, run_noise=0.02, runs=runs, heavy=heavy, seed=seed)


RUN_ONLY = NoisePrior(sd_run=0.02, sd_boot=1e-4, sd_layout=0.0)
RUN_AND_BOOT = NoisePrior(sd_run=0.02, sd_boot=0.02, sd_layout=0.0)


@pytest.mark.parametrize("layout", [0.0, 0.001, 0.002, 0.003])
def test_an_emulated_testbox_names_the_culprit_in_99_of_100(layout: float) -> None:
    found = score(World(name=f"emulated, layout {100 * layout:.1f} %", bench=lambda s: emulated(s, layout=layout), bisections=200, noise=EMULATED, paired=True))
    assert np.mean(found.right) >= 0.99
    assert np.mean(found.boots) < 16


def test_an_emulated_testbox_with_as_much_boot_noise_as_tcp_has() -> None:
    found = score(World(name="emulated, boots spread by 0.5 %", bench=lambda s: emulated(s, boot=0.005), bisections=200, noise=EMULATED, paired=True))
    assert np.mean(found.right) >= 0.985


@pytest.mark.parametrize("layout", [0.0, 0.002, 0.003])
def test_an_emulated_testbox_names_nobody_when_there_is_nobody(layout: float) -> None:
    world = World(
        name=f"emulated, no culprit, layout {100 * layout:.1f} %",
        bench=lambda s: emulated(s, layout=layout, none=True),
        bisections=200,
        noise=EMULATED,
        paired=True,
    )
    found = score(world)
    assert set(found.kinds) <= {"not_reproduced", "inconclusive"}
    assert found.kinds["not_reproduced"] >= 0.98 * world.bisections


@pytest.mark.parametrize(("commits", "boot"), [(30, 0.0), (30, 0.02), (100, 0.0), (100, 0.02)])
def test_on_noisy_testboxes_the_stated_probability_is_honest(commits: int, boot: float) -> None:
    noise = RUN_AND_BOOT if boot else RUN_ONLY
    found = score(
        World(
            name=f"run 2 %, boot {100 * boot:.0f} %, -5 %, n = {commits}", bench=lambda s: gaussian(s, commits=commits, boot=boot), bisections=150, noise=noise
        )
    )
    assert abs(found.z) < 3
    assert np.mean(found.right) >= 0.975


def test_noise_that_nobody_has_measured_yet() -> None:
    found = score(World(name="run 2 %, boot 2 %, prior 2.5 x off", bench=lambda s: gaussian(s, commits=30, boot=0.02, runs=3), bisections=60, noise=NOISY))
    assert abs(found.z) < 3
    assert np.mean(found.right) >= 0.95


def test_no_culprit_on_a_noisy_testbox_names_nobody() -> None:
    found = score(World(name="run 2 %, boot 2 %, no culprit", bench=lambda s: gaussian(s, commits=30, boot=0.02, none=True), bisections=60, noise=RUN_AND_BOOT))
    assert found.kinds.get("culprit", 0) <= 1
