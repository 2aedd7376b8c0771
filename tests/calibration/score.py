"""What bisections claimed against what was true."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom

from swingbot.core.bisect.state import Conclusion
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.noise import NoisePrior
from tests.calibration.families import Family
from tests.simulate import Ended, a_state, bisect_to_the_end, known_noise, with_history
from tests.worlds import SimulatedBench

POLICY = Policy()
BINS = ((0.0, 0.90), (0.90, 0.95), (0.95, 0.99), (0.99, 1.0))
LEAST_DOUBT = 0.001  # no claim counts as surer than this: a model is never that true


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One bisection."""

    seed: int
    kind: str
    stated: float | None  # of a claim: it named commits
    right: bool | None  # of a claim, or of "not reproduced"; None: nothing was claimed
    boots: int
    # each holds (what the booted images differ by, the commit's effect)
    intervals: tuple[tuple[bool, bool], ...]
    named: tuple[int, ...] = ()  # commits of the claims
    suspect: tuple[float, bool] | None = None  # (stated, right): it claims nothing
    error: str | None = None
    cpu: float = 0.0


def given_noise(family: Family, bench: SimulatedBench) -> NoisePrior:
    noise = known_noise(
        bench,
        family.certainty,
        layout=family.told_layout,
        wanders=family.told_days,
        modes=family.told_modes,
    )
    return replace(
        noise,
        sd_run=noise.sd_run * family.noise_factor,
        sd_boot=noise.sd_boot * family.noise_factor,
    )


def judge(family: Family, seed: int) -> Verdict:
    """Bisect one world. An engine that fails is a verdict too, never a claim."""
    bench = family.make(seed)
    state = a_state(
        bench,
        paired=family.paired,
        noise=given_noise(family, bench),
        min_effect_pct=family.min_effect_pct,
        build_cost=family.costs.build,
        boot_cost=family.costs.of_boot(bench.runs),
        testboxes=family.testboxes,
        layouts=family.layouts,
    )
    if family.history:
        state = with_history(bench, state, 50, family.costs)
    try:
        ended = bisect_to_the_end(bench, state, POLICY, family.costs)
    except Exception as error:  # shown in the table by its seed
        return Verdict(
            seed=seed,
            kind="failed",
            stated=None,
            right=None,
            boots=0,
            intervals=(),
            error=f"{type(error).__name__}: {error}",
        )
    said = ended.conclusion
    claims = (
        [(c.idx,) for c in said.culprits]
        if said.kind == "several"
        else [said.members]
        if said.kind in ("culprit", "credible_set")
        else []
    )
    right: bool | None = None
    if claims:
        culprits = set(bench.changes(family.min_effect_pct / 200))
        right = all(set(claim) & culprits for claim in claims)
    elif said.kind == "not_reproduced":
        change = bench.measured(bench.commits) - bench.measured(0)
        right = abs(change) < math.log1p(family.min_effect_pct / 100)
    stated = (said.probability if said.probability is not None else 1.0) if claims else None
    return Verdict(
        seed=seed,
        kind=said.kind,
        stated=stated,
        right=right,
        boots=ended.boots,
        intervals=tuple(covered(bench, ended)),
        named=tuple(commit for claim in claims for commit in claim),
        suspect=suspected(bench, said, family.min_effect_pct),
        cpu=ended.cpu_seconds,
    )


def suspected(
    bench: SimulatedBench, said: Conclusion, min_effect_pct: float
) -> tuple[float, bool] | None:
    """(stated, right) of the commit that was suspected and not named."""
    if said.suspect is None or said.probability is None:
        return None
    return said.probability, said.suspect in bench.changes(min_effect_pct / 200)


def covered(bench: SimulatedBench, ended: Ended) -> Iterable[tuple[bool, bool]]:
    """Of each printed interval: does it hold the true difference of the kernels that were booted,
    and the true effect between the two commits?
    """
    for c in ended.conclusion.culprits:
        if c.interval_pct is None or ended.conclusion.kind == "credible_set":
            continue
        low, high = (math.log1p(max(p, -99.99) / 100) for p in c.interval_pct)
        effect = bench.measured(c.idx) - bench.measured(c.parent_idx)
        images = _booted(bench, ended, c.idx) - _booted(bench, ended, c.parent_idx)
        yield low <= images <= high, low <= effect <= high


def _booted(bench: SimulatedBench, ended: Ended, idx: int) -> float:
    """Mean log level of the images that the confirmation boots of a point ran."""
    layouts = Counter(
        o.layout
        for o in ended.state.observations
        if o.idx == idx and o.phase == "confirm" and o.values
    )
    if not layouts:
        return bench.measured(idx)
    return sum(n * bench.measured(idx, lay) for lay, n in layouts.items()) / layouts.total()


# --- many of them ---------------------------------------------------------------------------------


def wilson(right: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    if not of:
        return 0.0, 1.0
    p, z2 = right / of, z * z
    middle, half = (
        (p + z2 / (2 * of)) / (1 + z2 / of),
        z / (1 + z2 / of) * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of)),
    )
    return max(middle - half, 0.0), min(middle + half, 1.0)


def too_sure(claims: Sequence[tuple[float, bool]]) -> float:
    """P(as many wrong claims or more | each is wrong with the probability that it admits):
    exact, a sum of unequal coins. Small: too sure.
    """
    wrong = sum(not right for _, right in claims)
    ways = np.array([1.0])
    for stated, _ in claims:
        doubt = max(1.0 - stated, LEAST_DOUBT)
        ways = np.convolve(ways, [1.0 - doubt, doubt])
    return float(ways[wrong:].sum())


def z_score(claims: Sequence[tuple[float, bool]]) -> float:
    """Right claims against the sum of stated ones, in its own sd.

    Below -3: too sure; above 3: too modest.
    """
    stated = np.array([min(p, 1 - LEAST_DOUBT) for p, _ in claims])
    spread = math.sqrt(float((stated * (1 - stated)).sum()))
    return (sum(r for _, r in claims) - float(stated.sum())) / spread if claims else 0.0


def claims(
    verdicts: Iterable[Verdict], low: float = 0.0, high: float = 1.0
) -> list[tuple[float, bool]]:
    """(stated, right) of those that named commits and stated low <= p < high (1 belongs to the last
    bin).
    """
    return [
        (v.stated, bool(v.right))
        for v in verdicts
        if v.stated is not None and (low <= v.stated < high or (high >= 1.0 <= v.stated))
    ]


def kinds(verdicts: Iterable[Verdict]) -> str:
    return ", ".join(
        f"{count} {kind}" for kind, count in sorted(Counter(v.kind for v in verdicts).items())
    )


def covers_too_little(hits: int, of: int, share: float = 0.94) -> float:
    """P(as few intervals or fewer hold the truth | each does with `share`)."""
    return float(binom.cdf(hits, of, share)) if of else 1.0
