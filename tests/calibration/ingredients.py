"""What composed worlds are made of.

Each ingredient draws its own strength; none knows of the engine, and none of another.

An ingredient changes a `Recipe`: arguments of the simulated testbox, and of the family that says
the engine's knowledge and options.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.worlds import Costs

Rng = np.random.Generator


@dataclass(kw_only=True)
class Recipe:
    """A world in the making: without ingredients it has one culprit, Gaussian noise,
    and the engine knows the truth.
    """

    commits: int
    run_noise: float
    boot_noise: float
    steps: dict[int, float]  # commit -> log effect
    bench: dict[str, Any] = field(default_factory=dict)
    family: dict[str, Any] = field(default_factory=dict)

    @property
    def sd(self) -> float:
        """Of one run in a boot of its own."""
        return math.hypot(self.run_noise, self.boot_noise)


Ingredient = Callable[[Recipe, Rng], None]


def plain(rng: Rng) -> Recipe:
    """2 to 100 commits of which one changes the level: by 1.5 % to 30 %,
    one to eight spreads of a run, two in three for the worse.
    """
    commits = round(_log_uniform(rng, 2, 100.4))
    run, boot = _log_uniform(rng, 0.002, 0.04), _log_uniform(rng, 0.002, 0.04)
    boot *= rng.random() < 0.6
    recipe = Recipe(commits=commits, run_noise=run, boot_noise=boot, steps={})
    recipe.steps[int(rng.integers(1, commits + 1))] = _step(recipe, rng)
    recipe.bench["runs"] = int(rng.integers(1, 6))
    recipe.family["certainty"] = float(rng.choice([2.0, 12.0, 50.0]))
    return recipe


def _log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def _sign(rng: Rng, minus: float = 0.5) -> float:
    return -1.0 if rng.random() < minus else 1.0


def _step(recipe: Recipe, rng: Rng) -> float:
    low = max(0.015, 1.0 * recipe.sd)
    return _sign(rng, 2 / 3) * _log_uniform(rng, low, max(0.3, 1.5 * low))


def _some(recipe: Recipe, rng: Rng, share: float, block: int) -> tuple[int, ...]:
    starts = [i for i in range(recipe.commits + 1) if rng.random() < share / block]
    return tuple(
        sorted({i + j for i in starts for j in range(block) if 1 <= i + j < recipe.commits})
    )


# --- culprits ---


def no_culprit(recipe: Recipe, rng: Rng) -> None:
    recipe.steps.clear()


def more_culprits(recipe: Recipe, rng: Rng) -> None:
    """One or two more; one in three undoes half of what is there."""
    for _ in range(int(rng.integers(1, 3))):
        commit = int(rng.integers(1, recipe.commits + 1))
        size = -0.5 * sum(recipe.steps.values()) if rng.random() < 1 / 3 else _step(recipe, rng)
        recipe.steps.setdefault(commit, size or _step(recipe, rng))


def creep_over_commits(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["commit_creep"] = math.expm1(_sign(rng, 2 / 3) * _log_uniform(rng, 0.01, 0.15))


def effect_in_some_boots(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["effect_share"] = float(rng.uniform(0.3, 0.95))


def unequal_noise(recipe: Recipe, rng: Rng) -> None:
    """A commit changes the noise: the culprit, or any."""
    at_culprit = [*recipe.steps][:1] if rng.random() < 0.7 else []
    commit = at_culprit[0] if at_culprit else int(rng.integers(1, recipe.commits + 1))
    factor = _log_uniform(rng, 1.5, 4.0)
    recipe.bench["spread_steps"] = {commit: factor if rng.random() < 0.7 else 1 / factor}


# --- boots and runs ---


def another_shape(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["shape"] = str(rng.choice(["student", "flat", "slow tail", "fast tail"]))


def wild_boots(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["heavy"] = _log_uniform(rng, 0.02, 0.2)


def wild_runs(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["heavy_runs"] = _log_uniform(rng, 0.02, 0.2)


def modes_by_boot(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["bimodal"] = float(rng.uniform(0.1, 0.6))
    recipe.bench["apart"] = _sign(rng) * -_log_uniform(rng, 2.0, 12.0)


# --- images ---


def modes_by_image(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["image_modes"] = float(rng.uniform(0.1, 0.5))
    recipe.bench["image_apart"] = _sign(rng) * _log_uniform(rng, 0.01, 0.06)


def layout(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["layout_noise"] = _log_uniform(rng, 0.001, 0.02)


def equal_images(recipe: Recipe, rng: Rng) -> None:
    """Commits that change no image: never those that change the level or the noise,
    nor the last one.
    """
    kept = {0, recipe.commits, *recipe.steps, *recipe.bench.get("spread_steps", {})}
    share, root, twins = float(rng.uniform(0.2, 0.8)), 0, {}
    for idx in range(1, recipe.commits + 1):
        if idx in kept or rng.random() >= share:
            root = idx
        else:
            twins[idx] = root
    recipe.bench["identical"] = twins


# --- time ---


def long_boots(recipe: Recipe, rng: Rng) -> None:
    """A bisection takes days: what days differ in is seen."""
    factor = _log_uniform(rng, 2.0, 20.0)
    recipe.family["costs"] = Costs(
        build=300 * factor, boot=60 * factor, run=60 * factor, link=60 * factor
    )


def drift(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["drift"] = recipe.sd * _log_uniform(rng, 0.3, 2.0)
    recipe.bench["drift_seconds"] = _log_uniform(rng, 600.0, 86_400.0)
    recipe.family["told_days"] = bool(rng.random() < 0.5)


def wandering_testbox(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["wander"] = recipe.sd * _log_uniform(rng, 0.3, 2.0)
    recipe.bench["wander_rho"] = float(rng.choice([0.5, 0.8, 0.95, 0.99]))
    recipe.family["told_days"] = bool(rng.random() < 0.5)


def days_differ(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["day_noise"] = recipe.sd * _log_uniform(rng, 0.3, 2.0)


def modes_by_day(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["day_modes"] = float(rng.uniform(0.2, 0.5))
    recipe.bench["day_apart"] = _sign(rng) * _log_uniform(rng, 0.01, 0.06)


def creep_of_the_testbox(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["creep"] = _sign(rng) * _log_uniform(rng, 0.01, 0.15)


def history(recipe: Recipe, rng: Rng) -> None:
    recipe.family["history"] = True


# --- the scale ---


def quantised_values(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["quantum"] = 1000.0 * _log_uniform(rng, 0.0005, 0.02)


def capped_values(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["cap"] = 1000.0 * math.exp(recipe.sd * rng.uniform(-0.5, 3.0))


# --- failures ---


def unbuildable(recipe: Recipe, rng: Rng) -> None:
    share, block = float(rng.uniform(0.05, 0.3)), int(rng.choice([1, 1, 4]))
    recipe.bench["unbuildable"] = _some(recipe, rng, share, block)


def unbootable(recipe: Recipe, rng: Rng) -> None:
    share, block = float(rng.uniform(0.05, 0.3)), int(rng.choice([1, 1, 4]))
    recipe.bench["unbootable"] = _some(recipe, rng, share, block)


def failing_images(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["failing_images"] = float(rng.uniform(0.05, 0.3))
    recipe.bench["failing"] = float(rng.uniform(0.3, 1.0))


def failing_boots(recipe: Recipe, rng: Rng) -> None:
    recipe.bench["boot_failure_rate"] = _log_uniform(rng, 0.02, 0.3)


# --- testboxes ---


def group_of_testboxes(recipe: Recipe, rng: Rng) -> None:
    recipe.family["testboxes"] = int(rng.integers(2, 5))
    recipe.bench["testbox_noise"] = _log_uniform(rng, 0.003, 0.05)


def paired_boots(recipe: Recipe, rng: Rng) -> None:
    """Boots of equal k share a shift and otherwise repeat well. One testbox."""
    recipe.family["paired"] = True
    recipe.bench["pert_noise"] = _log_uniform(rng, 0.002, 0.02)


# --- the engine's knowledge and options ---


def told_too_small(recipe: Recipe, rng: Rng) -> None:
    recipe.family["noise_factor"] = _log_uniform(rng, 0.3, 0.8)
    recipe.family["certainty"] = 2.0


def told_too_large(recipe: Recipe, rng: Rng) -> None:
    recipe.family["noise_factor"] = _log_uniform(rng, 1.25, 3.0)
    recipe.family["certainty"] = 2.0


def told_the_usual_layout(recipe: Recipe, rng: Rng) -> None:
    """0.2 %, whatever it is."""
    recipe.family["told_layout"] = 0.002


def rebuilds(recipe: Recipe, rng: Rng) -> None:
    recipe.family["layouts"] = True


def smallest_effect(recipe: Recipe, rng: Rng) -> None:
    recipe.family["min_effect_pct"] = float(rng.choice([0.1, 0.5, 2.0, 4.0]))


# (how often a world has it, what it does). Order matters: a later one sees what earlier ones did.
INGREDIENTS: dict[str, tuple[float, Ingredient]] = {
    "no culprit": (0.2, no_culprit),
    "more culprits": (0.2, more_culprits),
    "creep over commits": (0.08, creep_over_commits),
    "effect in some boots": (0.08, effect_in_some_boots),
    "unequal noise": (0.12, unequal_noise),
    "another shape": (0.2, another_shape),
    "wild boots": (0.12, wild_boots),
    "wild runs": (0.12, wild_runs),
    "modes by boot": (0.12, modes_by_boot),
    "modes by image": (0.12, modes_by_image),
    "layout": (0.2, layout),
    "equal images": (0.1, equal_images),
    "long boots": (0.2, long_boots),
    "drift": (0.12, drift),
    "wandering testbox": (0.12, wandering_testbox),
    "days differ": (0.1, days_differ),
    "modes by day": (0.1, modes_by_day),
    "creep of the testbox": (0.08, creep_of_the_testbox),
    "history": (0.1, history),
    "quantised values": (0.12, quantised_values),
    "capped values": (0.08, capped_values),
    "unbuildable": (0.12, unbuildable),
    "unbootable": (0.12, unbootable),
    "failing images": (0.1, failing_images),
    "failing boots": (0.12, failing_boots),
    "group of testboxes": (0.12, group_of_testboxes),
    "paired boots": (0.08, paired_boots),
    "told too small": (0.12, told_too_small),
    "told too large": (0.12, told_too_large),
    "told the usual layout": (0.4, told_the_usual_layout),
    "rebuilds": (0.5, rebuilds),
    "smallest effect": (0.2, smallest_effect),
}
# Of each of these pairs a world has at most the first.
EXCLUDE = (
    ("no culprit", "more culprits"),
    ("no culprit", "effect in some boots"),
    ("creep over commits", "equal images"),
    ("group of testboxes", "paired boots"),
)
