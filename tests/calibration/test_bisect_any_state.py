"""No state makes `step` raise. States are drawn at random, sensible or not; `STATES=100000
pytest tests/calibration/test_bisect_any_state.py` is the long form. Each is repeatable by its seed:
`STATES=1 FIRST=SEED`."""

from __future__ import annotations

import os
import warnings
from typing import Final

import numpy as np
import pytest

from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.posterior.belief import belief
from swingbot.core.bisect.state import BisectionState, Conclude, Measure, PointState, Wait
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.noise import NoisePrior
from swingbot.core.model.statuses import Phase

STATES: Final = int(os.environ.get("STATES") or "24")
FIRST: Final = int(os.environ.get("FIRST") or "1")
SHARES: Final = 4  # of the states, each a test of its own
PHASES: Final[tuple[Phase, ...]] = ("ends", "search", "confirm", "history")


def a_state(rng: np.random.Generator) -> BisectionState:
    last = int(rng.integers(1, rng.choice([3, 12, 60])))
    points = tuple(
        PointState(
            idx=i,
            weight=float(rng.choice([1.0, 1.0, 0.0, 0.05, 1e-9, 1e6])) if i else 0.0,
            build_cost_seconds=float(rng.choice([0.0, 10.0, 1e5])),
            built=bool(rng.random() < 0.5),
            skipped="it does not build" if rng.random() < 0.1 else None,
            same_as=int(rng.integers(0, i)) if i and rng.random() < 0.1 else None,
        )
        for i in range(last + 1)
    )
    testboxes = int(rng.choice([1, 1, 1, 2, 4]))
    asked: dict[tuple[int, int], WantedBoot] = {}
    for _ in range(int(rng.choice([0, 2, 6, 20, 60]))):
        boot = WantedBoot(
            int(rng.choice([0, last, int(rng.integers(0, last + 1))])),
            int(rng.integers(0, 12)),
            PHASES[rng.integers(len(PHASES))],
            int(rng.choice([0, 0, 0, 1, 3])),
            int(rng.integers(testboxes)),
        )
        asked.setdefault(boot.key, boot)
    boots = list(asked.values())
    coming = int(rng.choice([0, 0, 1, 3]))
    return BisectionState(
        points=points,
        observations=observed(rng, boots[coming:], last),
        in_flight=tuple(boots[:coming]),
        paired=bool(rng.random() < 0.3) and testboxes == 1,
        min_effect_pct=float(rng.choice([1.0, 1e-6, 50.0, 1000.0])),
        noise=NoisePrior(
            sd_run=float(rng.choice([0.0, 0.02, 1e-9, 3.0])),
            sd_boot=float(rng.choice([0.0, 0.02, 1e-9, 3.0])),
            sd_layout=float(rng.choice([0.0, 0.002, 1.0])),
            certainty=float(rng.choice([0.75, 2.0, 50.0, 0.5])),
            sd_day=[None, 0.0, 0.02, 2.0][rng.integers(4)],
            drift_seconds=float(rng.choice([0.0, 3600.0])),
            mode_share=float(rng.choice([0.0, 0.0, 0.3, 0.5])),
            mode_apart=float(rng.choice([0.3, -0.05, 1e-9, -4.0])),
        ),
        boot_cost_seconds=float(rng.choice([0.0, 10.0, 1e6])),
        testboxes=testboxes,
        layouts=bool(rng.random() < 0.5),
        layout_cost_seconds=float(rng.choice([0.0, 60.0])),
    )


def observed(
    rng: np.random.Generator, boots: list[WantedBoot], last: int
) -> tuple[Observation, ...]:
    """Levels of any sign and size, with a step, a creep or none; runs that are equal, noisy,
    wild, or cut off at a cap that some kernels reach always and others never."""
    scale = float(rng.choice([1.0, 1000.0, 1e-12, 1e12, -50.0, 0.0]))
    noise = float(rng.choice([0.0, 1e-6, 0.02, 0.5]))
    step = np.where(np.arange(last + 1) > last // 2, -0.1, 0.0)
    shapes = (np.zeros(last + 1), np.linspace(0.0, -0.12, last + 1), step)
    levels = scale * np.exp(shapes[rng.integers(3)])
    cap = scale * 0.95 if scale > 0 and rng.random() < 0.3 else np.inf
    timed = rng.random() < 0.7
    seen = []
    for n, boot in enumerate(boots):
        runs = int(rng.choice([0, 1, 1, 3, 5]))
        values = np.minimum(levels[boot.idx] * (1.0 + noise * rng.standard_t(2, runs)), cap)
        seen.append(
            Observation(
                idx=boot.idx,
                k=boot.k,
                values=tuple(float(v) for v in values),
                skip=None if runs else "hung",
                phase=boot.phase,
                layout=boot.layout,
                testbox=boot.testbox,
                at=float(n * rng.choice([0.0, 60.0])) if timed else None,
            )
        )
    return tuple(seen)


def a_policy(rng: np.random.Generator) -> Policy:
    return Policy(
        max_boots=int(rng.choice([1, 20, 200])),
        max_end_boots=int(rng.choice([2, 30])),
        parallel=int(rng.choice([1, 3])),
        confidence=float(rng.choice([0.5, 0.99, 0.9999])),
        odd_images=float(rng.choice([0.0, 0.16, 0.9])),
        prior_creep=float(rng.choice([0.0, 0.03, 0.9])),
    )


@pytest.mark.parametrize("share", range(SHARES))
def test_no_state_makes_a_step_raise(share: int) -> None:
    for seed in range(FIRST + share, FIRST + STATES, SHARES):
        rng = np.random.default_rng([seed, 17])
        state, policy = a_state(rng), a_policy(rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                action = step(state, policy)
            known = belief(state, policy)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
        asked = {o.key for o in state.observations} | {f.key for f in state.in_flight}
        if isinstance(action, Measure):
            wanted = [boot.key for boot in action.requests]
            assert wanted and len(wanted) == len(set(wanted)), seed
            assert not asked & set(wanted), seed
        elif isinstance(action, Conclude):
            assert 0.0 <= (action.conclusion.probability or 0.0) <= 1.0, seed
        else:
            assert isinstance(action, Wait) and state.in_flight, seed
        total = known.p_none + sum(c.probability for c in known.candidates)
        assert total == pytest.approx(1.0, abs=1e-6), seed
