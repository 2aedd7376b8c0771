"""Stage 2 on many seeded tips, after a stage 1 that is looser than the one that runs.

The table is printed (pytest -s).

What really runs, tip after tip, is simulated in `tests/calibration/watching.py`;
this one has layouts, days and records that err.

`python -m tests.calibration.test_detection TIPS` prints it for more tips:
docs/statistics.md, "From a swing to a bisection".
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import stdtr

from swingbot.core.stats.evidence import UNKNOWN, EvidenceThresholds, PairPrior, reading
from swingbot.core.thresholds import SCREEN_P

Array = npt.NDArray[np.float64]
HISTORY, BOOTS = 30, 3  # tips before, boots a tip
MAD_EFFICIENCY = (
    0.4  # degrees of freedom of a median absolute deviation for each of a standard deviation
)
MIN_EFFECT = math.log1p(0.01)
ALLOWED = 1e-4  # false swings for each tip and metric


@dataclass(frozen=True, kw_only=True)
class Tips:
    """Tips of a branch on a testbox: `sd` of a boot mean.

    Heavy: share of boots that lose an exponential of mean 6 sd.
    """

    name: str
    sd: float = 0.01
    heavy: float = 0.0
    layout: float = 0.0  # sd between builds of equal code
    day: float = 0.0  # sd between the days of two tips; base and tip are booted on one
    effect: float = 0.0
    record: float | None = (
        None  # sd in the noise record, as a multiple of the true sd; None: without a record
    )
    record_df: float = 24.0

    def boots(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        noise = rng.normal(0.0, self.sd, shape)
        return (
            noise
            - np.where(rng.random(shape) < self.heavy, rng.exponential(6.0 * self.sd, shape), 0.0)
            if self.heavy
            else noise
        )

    @property
    def prior(self) -> PairPrior:
        return (
            UNKNOWN
            if self.record is None
            else PairPrior(sd=self.record * self.sd * math.sqrt(2.0), df=self.record_df)
        )


@dataclass(frozen=True, kw_only=True)
class Found:
    tips: int
    suspected: float  # share of tips that pass stage 1
    accepted: float  # share of tips that become swings
    power: float  # of stage 2 alone: share of tips accepted within 20 pairs
    by_12: float
    by_16: float
    pairs: float  # mean number of pairs of a tip in stage 2


def play(world: Tips, tips: int, seed: int = 1) -> Found:
    """Stage 1 as one look at the history and one at the base, then stage 2 on fresh pairs of all
    tips, so that rare events can be counted.

    P(false swing) is P(stage 1, either direction) times P(stage 2 accepts that direction):
    the pairs are fresh, so the two are independent given the layouts of the two kernels,
    which both stages share.
    """
    rng = np.random.default_rng([seed, len(world.name)])
    layout = rng.normal(0.0, world.layout, (tips, 2)) if world.layout else np.zeros((tips, 2))
    shift = layout[:, 1] - layout[:, 0] + world.effect
    suspect = _stage_1(world, rng, tips, layout[:, 1] + world.effect, layout[:, 0])
    base, head = world.boots(rng, (tips, 20)), world.boots(rng, (tips, 20)) + shift[:, None]
    accepted, used = {}, {}
    for side in (-1, 1):
        accepted[side], used[side] = decide(
            head - base,
            world.prior,
            EvidenceThresholds(
                min_effect=MIN_EFFECT, direction=-1 if side < 0 else 1, layout=world.layout
            ),
        )
    main = -1 if world.effect <= 0 else 1
    false = sum(float(np.mean(suspect[side] * accepted[side])) for side in (-1, 1))
    return Found(
        tips=tips,
        suspected=float(np.mean(suspect[-1] | suspect[1])),
        # Without a layout the stages are independent: the product of the rates has far less scatter
        # than counting both at once.
        accepted=false
        if world.layout
        else sum(float(suspect[side].mean()) * float(accepted[side].mean()) for side in (-1, 1)),
        power=float(accepted[main].mean()),
        by_12=float(np.mean(accepted[main] & (used[main] <= 12))),
        by_16=float(np.mean(accepted[main] & (used[main] <= 16))),
        pairs=float(used[main].mean()),
    )


def _stage_1(
    world: Tips, rng: np.random.Generator, tips: int, level: Array, base_level: Array
) -> dict[int, npt.NDArray[np.bool_]]:
    """Which tips are suspected, by direction: against 30 tips before, or (p < 0.005 by Welch)
    against the base.
    """
    days = (
        rng.normal(0.0, world.day, (tips, HISTORY + 1))
        if world.day
        else np.zeros((tips, HISTORY + 1))
    )
    past = world.boots(rng, (tips, HISTORY, BOOTS)).mean(axis=2) + days[:, 1:]
    past += rng.normal(0.0, world.layout, past.shape) if world.layout else 0.0
    now = world.boots(rng, (tips, BOOTS)) + (days[:, 0] + level)[:, None]
    base = world.boots(rng, (tips, BOOTS)) + (days[:, 0] + base_level)[:, None]
    centre = np.median(past, axis=1)
    sd = np.maximum(1.4826 * np.median(np.abs(past - centre[:, None]), axis=1), 1e-4)
    far = now.mean(axis=1) - centre
    middle = np.median(now, axis=1) - centre
    near = np.minimum(np.abs(far), np.abs(middle))
    p = 2.0 * stdtr(MAD_EFFICIENCY * HISTORY, -near / (sd * math.sqrt(1 + math.pi / 2 / HISTORY)))
    against_past = (
        (p < SCREEN_P)
        & (np.abs(far) >= MIN_EFFECT)
        & (middle * far > 0)
        & (np.abs(middle) >= MIN_EFFECT / 2)
    )
    step = now.mean(axis=1) - base.mean(axis=1)
    v0, v1 = base.var(axis=1, ddof=1) / BOOTS, now.var(axis=1, ddof=1) / BOOTS
    df = (v0 + v1) ** 2 / (v0**2 + v1**2) * (BOOTS - 1)
    against_base = (2.0 * stdtr(df, -np.abs(step) / np.sqrt(v0 + v1)) < SCREEN_P) & (
        np.abs(step) >= MIN_EFFECT
    )
    return {
        side: (against_past & (side * far > 0)) | (against_base & (side * step > 0))
        for side in (-1, 1)
    }


def decide(
    pairs: Array, prior: PairPrior, gate: EvidenceThresholds
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Stage 2 of many tips at once: the accepted tips, and the number of pairs per decision."""
    accepted, used = np.zeros(len(pairs), dtype=bool), np.full(len(pairs), gate.max_pairs)
    left = np.arange(len(pairs))
    for n in range(1, gate.max_pairs + 1):
        said = reading(pairs[left, :n], prior, gate)
        over = said["accept"] | said["futile"]
        accepted[left[said["accept"]]], used[left[over]] = True, n
        left = left[~over]
    return accepted, used


NULLS = (
    Tips(name="nothing, 0.5 %, no record", sd=0.005),
    Tips(name="nothing, 0.5 %, record", sd=0.005, record=1.0),
    Tips(name="nothing, 2 %, no record", sd=0.02),
    Tips(name="nothing, 2 %, record", sd=0.02, record=1.0),
    Tips(name="nothing, 2 %, record 1.25 x too small", sd=0.02, record=0.8),
    Tips(name="nothing, 0.5 %, days differ by 2 %", sd=0.005, day=0.02, record=1.0),
    Tips(name="nothing, 0.3 %, layout 0.2 %", sd=0.003, layout=0.002, record=1.0),
)
HEAVY = (
    Tips(name="nothing, 2 %, heavy tails, no record", sd=0.02, heavy=0.1),
    Tips(name="nothing, 2 %, heavy tails, record", sd=0.02, heavy=0.1, record=1.0),
)
CHANGES = (
    Tips(name="-1 %, 0.5 %, no record", sd=0.005, effect=-0.01),
    Tips(name="-1 %, 0.5 %, record", sd=0.005, effect=-0.01, record=1.0),
    Tips(name="-5 %, 2 %, no record", sd=0.02, effect=-0.05),
    Tips(name="-5 %, 2 %, record", sd=0.02, effect=-0.05, record=1.0),
    Tips(name="-5 %, 2 %, heavy tails, record", sd=0.02, effect=-0.05, heavy=0.1, record=1.0),
)


def line(world: Tips, found: Found) -> str:
    return (
        f"| {world.name} | {100 * found.suspected:.2f} | {1e4 * found.accepted:.2f} |"
        f" {100 * found.power:.2f} | {100 * found.by_12:.1f} | {100 * found.by_16:.1f} |"
        f" {found.pairs:.1f} |"
    )


HEAD = (
    "| tips | suspected % | swings in 10 000 | stage 2 accepts % | by 12 pairs | by"
    " 16 | pairs |\n|---|---|---|---|---|---|---|"
)


@pytest.mark.parametrize("world", NULLS, ids=lambda w: w.name)
def test_the_automatic_path_is_wrong_at_most_once_in_ten_thousand(world: Tips) -> None:
    found = play(world, 8000)
    print(f"\n{line(world, found)}")
    # The rate is a product of two counts of 8000: three of its standard errors are allowed for.
    rates = found.suspected, found.power
    error = math.sqrt(sum((1 - r) / (r * found.tips) for r in rates if r > 0))
    assert found.accepted <= ALLOWED * (1 + 3 * error)


def test_one_per_cent_at_half_a_per_cent_of_noise_is_found_in_sixteen_pairs() -> None:
    found = play(CHANGES[1], 4000)
    assert found.by_16 >= 0.95
    assert found.by_12 >= 0.93


def test_without_a_record_it_is_found_in_twenty() -> None:
    assert play(CHANGES[0], 4000).power >= 0.95


if __name__ == "__main__":
    print(HEAD)
    for each in (*NULLS, *HEAVY, *CHANGES):
        print(line(each, play(each, int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)), flush=True)
