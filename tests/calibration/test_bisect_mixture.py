"""The model for unpaired boots against itself written out without grids that adapt, sums that
run or priors that are thinned."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_t, norm

from swingbot.core.bisect.evidence.range_evidence import Evidence, gather
from swingbot.core.bisect.posterior import mixture, mixture_noise, wandering
from swingbot.core.bisect.posterior.belief import belief
from swingbot.core.bisect.posterior.gaussian_cell import Sums
from swingbot.core.bisect.posterior.step_posterior import Posterior
from swingbot.core.bisect.state import BisectionState
from swingbot.core.bisect.thresholds import EFFECT_WIDTHS, ODD_IMAGE_SD, ODD_SWINGS, Policy
from swingbot.core.model.bisection import Observation
from swingbot.core.model.noise import NoisePrior
from swingbot.core.thresholds import SPREAD_FLOOR
from tests.simulate import SimulatedBench, a_state

POLICY = Policy()
LEAST = math.log(1.01)
Floats = NDArray[np.float64]


def a_searched_state(
    *, layout: float = 0.0, wild: float = 0.0, timed: bool = False
) -> BisectionState:
    bench = SimulatedBench(
        commits=9, culprit=4, effect=-0.04, run_noise=0.015, layout_noise=layout, runs=1, seed=4
    )
    noise = NoisePrior(sd_run=0.015, sd_boot=0.001, sd_layout=layout, certainty=12.0)
    asked = [
        (0, 0, 0),
        (9, 0, 0),
        (9, 1, 0),
        (0, 1, 0),
        (5, 0, 0),
        (2, 0, 0),
        (2, 1, 1),
        (4, 0, 0),
        (3, 0, 0),
    ]
    seen = []
    for n, (i, k, build) in enumerate(asked):
        value = bench.boot(i, k, layout=build)[0][0] * (1.0 - wild * (i == 3))
        seen.append(
            Observation(
                idx=i,
                k=k,
                values=(value,),
                phase="search",
                layout=build,
                at=60.0 * n if timed else None,
            )
        )
    return replace(a_state(bench, noise=noise, layouts=True), observations=tuple(seen))


def believed(state: BisectionState) -> tuple[Evidence, Posterior]:
    ev = gather(state, POLICY)
    return ev, mixture.posterior(ev, state.noise, POLICY, min_effect=LEAST)


def likelihoods(ev: Evidence, theta: mixture_noise.Theta, levels: Floats) -> Floats:
    """(position, level) -> likelihood of the boots there. What an image is off by, by
    quadrature: most by their layout, odd ones by far more."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(31)
    shares = shares / shares.sum()
    kinds = [
        (theta.layout * z, share * (1 - theta.odd)) for z, share in zip(nodes, shares, strict=True)
    ] + [
        (
            ODD_IMAGE_SD * z if theta.mode is None else theta.mode + theta.layout * z,
            share * theta.odd,
        )
        for z, share in zip(nodes, shares, strict=True)
    ]
    found = np.ones((ev.last + 1, len(levels)))
    for kernel in {(ev.where(b), b.layout) for b in ev.boots}:
        here = np.zeros(len(levels))
        for image, share in kinds:
            likely = np.ones(len(levels))
            for b in ev.boots:
                if share and (ev.where(b), b.layout) == kernel:
                    off = math.log(b.values[0]) - levels - image
                    clean = norm.pdf(off, scale=theta.spread)
                    wild = norm.pdf(off, theta.apart * theta.spread, theta.width * theta.spread)
                    likely = likely * ((1 - theta.wild) * clean + theta.wild * wild)
            here += share * likely
        found[kernel[0]] *= here
    return found


def written_out(state: BisectionState) -> Floats:
    """P(commit 1..n), then P(none). Two levels on one wide, fine grid; layouts by quadrature;
    the prior of the effect as it is."""
    ev = gather(state, POLICY)
    columns = mixture_noise.boot_columns(ev, state.noise)
    levels = np.arange(-0.16, 0.10, 0.0008) + math.log(1000.0)
    effect = levels[None, :] - levels[:, None]
    prior_d = sum(w * norm.pdf(effect, scale=f * POLICY.prior_effect) for f, w in EFFECT_WIDTHS)
    step = float(levels[1] - levels[0])
    total: Floats = np.zeros(ev.last + 1)
    of = mixture_noise.thetas_of(columns, state.noise, POLICY)
    thetas, pairs = of.thetas.each, of.pairs
    of_theta = [likelihoods(ev, theta, levels) for theta in thetas]
    for pair in pairs:
        before, after = of_theta[pair.before], of_theta[pair.after]
        unlike = 2.0 * thetas[pair.before].odd * (1.0 - thetas[pair.before].odd)
        none = POLICY.prior_no_change + ODD_SWINGS * unlike
        none /= none + 1.0 - POLICY.prior_no_change
        for tau in range(1, ev.last + 1):
            left, right = np.prod(before[:tau], axis=0), np.prod(after[tau:], axis=0)
            total[tau - 1] += (
                math.exp(pair.ln_prior)
                * (1 - none)
                * ev.mass[tau]
                * float(left @ prior_d @ right)
                * step**2
            )
        if pair.equal:
            whole = float(np.prod(before, axis=0).sum()) * step
            total[-1] += math.exp(pair.ln_prior) * none * whole
    return np.asarray(total / total.sum())


@pytest.mark.parametrize(("layout", "wild"), [(0.0, 0.0), (0.0, 0.15), (0.006, 0.0)])
def test_the_mixture_is_the_one_of_the_model_written_out(layout: float, wild: float) -> None:
    state = a_searched_state(layout=layout, wild=wild)
    _, seen = believed(state)
    assert np.append(seen.commit[1:], seen.none) == pytest.approx(written_out(state), abs=0.01)


def test_a_wild_boot_is_distinguished_from_a_step() -> None:
    ev, seen = believed(a_searched_state(wild=0.3))
    (odd,) = [i for i, b in enumerate(ev.boots) if ev.where(b) == 3]
    assert seen.wild[odd] > 0.99
    assert max(p for i, p in enumerate(seen.wild) if i != odd) < 0.5
    assert seen.commit[4:6].sum() > 0.5  # and not commit 3


def test_a_testbox_that_wanders_is_the_student_t_of_its_covariance() -> None:
    state = a_searched_state(timed=True)
    ev = gather(state, POLICY)
    columns = mixture_noise.boot_columns(ev, state.noise)
    times = np.array([float(b.at or 0.0) for b in ev.boots])
    centre = float(np.median(columns.x))
    a, sd, y = state.noise.certainty, columns.spread, columns.x - centre
    sums = Sums(
        at=columns.at[columns.point],
        point=columns.node,
        block=np.zeros(len(y), np.intp),
        weight=np.ones(len(y)),
        level=y,
        centre=centre,
    )
    seen, wander = wandering.wandering(
        ev,
        sums,
        state.noise,
        POLICY,
        spread=sd,
        prior_spread=columns.prior,
        min_effect=LEAST,
    )
    point = columns.at[columns.point][columns.node]
    prior_d = max(4.0, (POLICY.prior_effect / sd) ** 2)
    moving, still = np.zeros(ev.last + 1), np.zeros(ev.last + 1)
    for size, seconds, share in wandering._wanders(times, state.noise, sd):
        cov = (
            np.eye(len(y))
            + size**2 * np.exp(-np.abs(times[:, None] - times[None, :]) / seconds)
            + 1e7
        )
        shape = (columns.prior**2 * a + len(y) * SPREAD_FLOOR**2 / 2) / a
        for tau in range(ev.last + 1):
            behind = (point >= tau).astype(float) if tau else np.zeros(len(y))
            prior = (
                POLICY.prior_no_change if tau == 0 else (1 - POLICY.prior_no_change) * ev.mass[tau]
            )
            likely = (
                share
                * prior
                * multivariate_t(
                    loc=np.zeros(len(y)),
                    shape=shape * (cov + prior_d * np.outer(behind, behind)),
                    df=round(2 * a),
                ).pdf(y)
            )
            (moving if size else still)[tau] += likely
    assert wander == pytest.approx(moving.sum() / (moving.sum() + still.sum()), abs=0.02)
    assert seen.commit[1:] == pytest.approx(moving[1:] / moving.sum(), abs=0.02)


def test_what_testboxes_of_a_group_differ_by_tells_nothing_of_the_step() -> None:
    state = a_searched_state()
    far = tuple(
        replace(o, testbox=o.k % 2, values=(o.values[0] * (1.0 if o.k % 2 == 0 else 1.3),))
        for o in state.observations
    )
    apart = belief(replace(state, observations=far, testboxes=2), POLICY)
    near = belief(
        replace(
            state,
            observations=tuple(replace(o, testbox=o.k % 2) for o in state.observations),
            testboxes=2,
        ),
        POLICY,
    )
    assert [c.probability for c in apart.candidates] == pytest.approx(
        [c.probability for c in near.candidates], abs=0.06
    )


def test_a_step_to_a_twentieth_is_believed_although_boots_differ_by_half() -> None:
    """Recorded on a starved host: eight boots of two kernels, two runs each; the second kernel
    waits 200 us in every page fault."""
    good = [(79102, 52387), (27884, 199202), (24854, 155131)]
    bad = [(5240, 6528), (3560, 3012), (2254, 2421), (3149, 6532)]
    seen = tuple(
        Observation(idx=i, k=k, values=runs, phase="ends")
        for i, boots in ((0, good), (8, bad))
        for k, runs in enumerate(boots)
    )
    noise = NoisePrior(sd_run=0.05, sd_boot=0.03, sd_layout=0.005, certainty=0.75)
    _, post = believed(replace(a_state(SimulatedBench(commits=8), noise=noise), observations=seen))
    assert post.none_or_small < 1e-3
    assert post.effect == pytest.approx(-2.9, abs=0.5)


def test_a_side_that_a_cap_silences_leaves_the_other_shapes_to_be_weighed() -> None:
    """No pair of equal spreads can matter then, and the best of them are still compared with two
    steps and a creep."""
    rng = np.random.default_rng(1)
    seen = [
        Observation(
            idx=i,
            k=k,
            values=(120.0 if i >= 6 else 100.0 * (1.0 + 0.05 * rng.standard_normal()),),
            phase="search",
        )
        for i in (0, 2, 4, 6, 8, 10)
        for k in range(40 if i in (0, 10) else 20)
    ]
    bench = SimulatedBench(
        commits=10, culprit=6, effect=0.2, run_noise=0.03, layout_noise=0.002, runs=1, seed=1
    )
    noise = NoisePrior(sd_run=0.03, sd_boot=0.001, sd_layout=0.002, certainty=12.0)
    state = replace(a_state(bench, noise=noise, layouts=True), observations=tuple(seen))
    _, post = believed(state)
    assert post.two < 0.5
    assert post.creep < 0.05
    assert float(post.commit[5:7].sum()) > 0.99
