"""Other methods to bisect a noisy benchmark, on the same worlds and at the same costs; and the
theoretical bound, which no method can beat.

Each peer sees a `Probe`: boots of a kernel, in the order in which it asks,
at the cost of a laboratory with one testbox.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp, mannwhitneyu

from tests.worlds import Costs, SimulatedBench

Floats = NDArray[np.float64]


@dataclass
class Probe:
    """One testbox, one thing after the other."""

    bench: SimulatedBench
    costs: Costs = field(default_factory=Costs)
    now: float = 0.0
    boots: int = 0
    runs: int = 0
    built: set[int] = field(default_factory=set)
    _k: dict[int, int] = field(default_factory=dict)

    def measure(self, idx: int, runs: int, *, fresh: bool) -> Floats | None:
        """Logs of this many runs, in one boot or each in a boot of its own.

        None if the kernel does not build or boot.
        """
        if idx not in self.built:
            self.built.add(idx)
            self.now += self.costs.build
        self.bench.runs = 1 if fresh else runs
        values: list[float] = []
        failures = 0
        while len(values) < runs:
            if self.bench.root(idx) in self.bench.broken:
                return None
            k = self._k[idx] = self._k.get(idx, -1) + 1
            measured, why = self.bench.boot(idx, k, at=self.now, order=self.boots)
            self.now += self.costs.of_boot(self.bench.runs)
            self.boots += 1
            self.runs += len(measured)
            failures += why is not None
            if failures >= 3:
                return None
            values += measured
        return np.asarray(np.log(np.array(values)), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Named:
    """Commits that a peer claims, each as a set of which one is meant."""

    claims: tuple[tuple[int, ...], ...] = ()


Method = Callable[[Probe], Named]


def git_bisect(probe: Probe, runs: int, *, fresh: bool) -> Named:
    """Mean of N runs against the midpoint of the ends.

    A kernel without a result is skipped for its nearest neighbour, as git does.
    """
    n = probe.bench.commits
    good_end, bad_end = probe.measure(0, runs, fresh=fresh), probe.measure(n, runs, fresh=fresh)
    if good_end is None or bad_end is None:
        return Named()
    low, high = float(good_end.mean()), float(bad_end.mean())

    def is_bad(values: Floats) -> bool:
        return abs(float(values.mean()) - high) < abs(float(values.mean()) - low)

    good, bad = search(probe, 0, n, lambda i: probe.measure(i, runs, fresh=fresh), is_bad)
    return Named((tuple(range(good + 1, bad + 1)),))


def search(
    probe: Probe,
    good: int,
    bad: int,
    look: Callable[[int], Floats | None],
    is_bad: Callable[[Floats], bool],
) -> tuple[int, int]:
    """Halve (good, bad] as `git bisect` does.

    If all kernels between are skipped, the result is a range.
    """
    skipped: set[int] = set()
    while True:
        left = [i for i in range(good + 1, bad) if i not in skipped]
        if not left:
            return good, bad
        middle = min(left, key=lambda i: (abs(2 * i - good - bad), i))
        values = look(middle)
        if values is None:
            skipped.add(middle)
        elif is_bad(values):
            bad = middle
        else:
            good = middle


def sprt(probe: Probe, ends: int = 10, most: int = 400) -> Named:
    """Wald's test at each step of a bisection: fresh boots until the log-likelihood ratio of the
    two end levels leaves +-ln((1-a)/a).

    Levels and spread are those of ten boots of each end; a = 0.01 shared by the steps.
    """
    n = probe.bench.commits
    a, b = probe.measure(0, ends, fresh=True), probe.measure(n, ends, fresh=True)
    if a is None or b is None:
        return Named()
    low, high = float(a.mean()), float(b.mean())
    variance = max((float(a.var(ddof=1)) + float(b.var(ddof=1))) / 2, 1e-12)
    alpha = 0.01 / max(1, math.ceil(math.log2(n)))
    limit = math.log((1 - alpha) / alpha)

    def look(i: int) -> Floats | None:
        ratio, count = 0.0, 0
        while abs(ratio) < limit and count < most:
            y = probe.measure(i, 1, fresh=True)
            if y is None:
                return None
            ratio += ((float(y[0]) - low) ** 2 - (float(y[0]) - high) ** 2) / (2 * variance)
            count += 1
        return np.array([ratio])

    good, bad = search(probe, 0, n, look, lambda ratio: bool(ratio[0] > 0))
    return Named((tuple(range(good + 1, bad + 1)),))


def pinpoint_like(
    probe: Probe, *, least: int = 10, most: int = 160, differ: float = 0.01, same: float = 0.15
) -> Named:
    """Neighbours are compared by the smaller p of Kolmogorov-Smirnov and Mann-Whitney:
    below `differ` the middle between them is measured, above `same` they are equal,
    between the two both get twice as many runs, up to `most`.
    The ends of the range are known to differ: they are never held to be equal before that.
    Every run in a fresh boot.
    """
    n = probe.bench.commits
    seen: dict[int, Floats] = {}
    dead: set[int] = set()
    for end in (0, n):
        first = probe.measure(end, least, fresh=True)
        if first is None:
            return Named()
        seen[end] = first
    settled: dict[tuple[int, int, int, int], float] = {}
    while True:
        order = sorted(seen)
        for left, right in pairwise(order):
            key = left, right, len(seen[left]), len(seen[right])
            if key not in settled:
                settled[key] = _smaller_p(seen[left], seen[right])
            p = settled[key]
            if p < differ:
                between = [i for i in range(left + 1, right) if i not in dead]
                if between:
                    _add_middle(
                        probe,
                        seen,
                        dead,
                        min(between, key=lambda i: (abs(2 * i - left - right), i)),
                        least,
                    )
                    break
            elif (p < same or (left, right) == (0, n)) and min(
                len(seen[left]), len(seen[right])
            ) < most:
                _more(probe, seen, (left, right), most)
                break
        else:
            pairs = pairwise(order)
            return Named(
                tuple(
                    tuple(range(a + 1, b + 1))
                    for a, b in pairs
                    if settled[a, b, len(seen[a]), len(seen[b])] < differ
                )
            )


def _add_middle(
    probe: Probe, seen: dict[int, Floats], dead: set[int], middle: int, least: int
) -> None:
    values = probe.measure(middle, least, fresh=True)
    if values is None:
        dead.add(middle)
    else:
        seen[middle] = values


def _more(probe: Probe, seen: dict[int, Floats], pair: tuple[int, int], most: int) -> None:
    wanted = min(2 * min(len(seen[i]) for i in pair), most)
    for i in pair:
        if len(seen[i]) < wanted:
            more = probe.measure(i, wanted - len(seen[i]), fresh=True)
            seen[i] = (
                np.concatenate([seen[i], more]) if more is not None else np.resize(seen[i], wanted)
            )


def _smaller_p(a: Floats, b: Floats) -> float:
    exact: Literal["exact", "asymp"] = "exact" if max(len(a), len(b)) <= 10 else "asymp"
    return min(
        float(ks_2samp(a, b, method=exact).pvalue),
        float(mannwhitneyu(a, b, method="asymptotic").pvalue),
    )


METHODS: dict[str, Method] = {
    "git N=3, one boot": lambda p: git_bisect(p, 3, fresh=False),
    "git N=3, fresh boots": lambda p: git_bisect(p, 3, fresh=True),
    "git N=5, one boot": lambda p: git_bisect(p, 5, fresh=False),
    "git N=5, fresh boots": lambda p: git_bisect(p, 5, fresh=True),
    "git N=10, one boot": lambda p: git_bisect(p, 10, fresh=False),
    "git N=10, fresh boots": lambda p: git_bisect(p, 10, fresh=True),
    "Pinpoint-like": pinpoint_like,
    "SPRT": sprt,
}


# --- the bound ------------------------------------------------------------------------------------


def bound(bench: SimulatedBench, delta: float = 0.01) -> float:
    """Runs, one a boot, levels and noise known: log2(n)/C + ln(1/delta)/KL (bisect.md 2.1),
    by quadrature over this world's noise.

    C is what one run tells of a fair bit, KL the larger of the two divergences.
    """
    sd, shift = bench.sd, abs(math.log1p(bench.effect))
    reach = 8 * sd + shift + (60 * sd if bench.heavy_runs or bench.heavy else 0) + 4 * sd
    y, width = np.linspace(-reach, reach, 40_001, retstep=True)
    density = _density(bench, y, sd)
    moved = np.interp(y - shift, y, density, left=0.0, right=0.0)
    both = (density + moved) / 2

    def divergence(p: Floats, q: Floats) -> float:
        at = (p > 1e-300) & (q > 1e-300)
        return float((p[at] * np.log(p[at] / q[at])).sum() * width)

    capacity = (divergence(density, both) + divergence(moved, both)) / 2 / math.log(2)
    apart = max(divergence(density, moved), divergence(moved, density))
    return math.log2(bench.commits) / capacity + math.log(1 / delta) / apart


def _density(bench: SimulatedBench, y: Floats, sd: float) -> Floats:
    """Of one run in a boot of its own about its kernel's level."""
    width = float(y[1] - y[0])
    normal = np.exp(-0.5 * (y / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
    share, mean = (
        (bench.heavy_runs, 6 * sd)
        if bench.heavy_runs
        else (bench.heavy, 6 * max(bench.run_noise, bench.boot_noise))
    )
    if share:
        lost = np.where(y <= 0, np.exp(np.minimum(y, 0.0) / mean), 0.0)
        lost /= lost.sum() * width
        size = 2 * len(y)
        both = np.fft.irfft(np.fft.rfft(normal, size) * np.fft.rfft(lost, size), size) * width
        middle = len(y) // 2
        normal = (1 - share) * normal + share * np.maximum(both[middle : middle + len(y)], 0.0)
    if bench.bimodal:
        normal = (1 - bench.bimodal) * normal + bench.bimodal * np.interp(
            y + bench.apart * sd, y, normal, left=0.0, right=0.0
        )
    return np.asarray(normal, dtype=np.float64)
