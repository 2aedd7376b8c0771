"""Steps in histories: swingbot compared with Apache Otava, ruptures and Mozilla's Perfherder rule.

    python -m benchmarks.histories [--series 200] [--seed 1] [--labelled DIRECTORY]

Simulated: flat series of 80 points (robust sd 0.7 %) of three kinds of noise,
with and without one step. A step counts as found within 3 points of its place;
what is found in the flat series is false.

Labelled: DIRECTORY holds `NAME.csv` (columns x and value, oldest first) and `NAME.labels` (the
number of the first point of each new level, from 0, one a line).
A label is found within 5 points; every other find is false.

Peers are run where they are installed (`pip install apache-otava ruptures`,
best in a virtual environment of their own together with this project's requirements);
none is needed by swingbot.
"""

from __future__ import annotations

import argparse
import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from swingbot.core.stats.findings import look
from swingbot.core.stats.history_file import parse_history

Array = npt.NDArray[np.float64]
Finder = Callable[[Array], list[int]]

POINTS: Final = 80
SD: Final = 0.007
STEPS: Final = (0.01, 0.02, 0.03, 0.05)
NEAR, NEAR_LABEL = 3, 5
# Perfherder's published defaults: points before and after, and the t value of an alert.
BACK, FORE, T_ALERT = (12, 24), 12, 7.0


def independent(rng: np.random.Generator) -> Array:
    return rng.normal(0.0, SD, POINTS)


def alike(rng: np.random.Generator) -> Array:
    """Neighbours alike by 0.3, and 3 points in 100 five spreads wide."""
    wild = np.where(rng.random(POINTS) < 0.03, rng.normal(0.0, 5.0, POINTS), 0.0)
    return SD * (_autoregression(rng, 0.3) + wild)


def wandering(rng: np.random.Generator) -> Array:
    """A level that wanders (0.7 from point to point) below independent noise with heavy tails."""
    return SD * (0.6 * _autoregression(rng, 0.7) + 0.8 * rng.standard_t(4, POINTS) / math.sqrt(2.0))


def _autoregression(rng: np.random.Generator, r: float) -> Array:
    out = rng.normal(0.0, 1.0, POINTS)
    for n in range(1, POINTS):
        out[n] = r * out[n - 1] + math.sqrt(1.0 - r * r) * out[n]
    return np.asarray(out)


NOISE: Final = {
    "independent": independent,
    "alike 0.3, 3 % wild": alike,
    "wanders, heavy tails": wandering,
}


def ours(values: Array) -> list[int]:
    return [change.at for change in look([float(v) for v in values]).changes]


def perfherder(values: Array) -> list[int]:
    """Mozilla's rule as published: t of a linearly weighted window before and after each point.

    A step is where t is above the threshold and largest.
    """
    t = np.zeros(len(values))
    for at in range(BACK[0], len(values) - FORE + 1):
        before, after = values[max(0, at - BACK[1]) : at][::-1], values[at : at + FORE]
        (m0, s0), (m1, s1) = _weighted(before), _weighted(after)
        spread = math.sqrt(s0 / len(before) + s1 / len(after))
        t[at] = abs(m1 - m0) / spread if spread > 0 else 0.0
    found: list[int] = []
    while float(t.max(initial=0.0)) > T_ALERT:
        at = int(np.argmax(t))
        found.append(at)
        t[max(0, at - FORE) : at + FORE] = 0.0
    return sorted(found)


def _weighted(values: Array) -> tuple[float, float]:
    """Mean and variance; the nearest point weighs 1, those beyond linearly less."""
    weights = (len(values) - np.arange(len(values))) / len(values)
    mean = float(weights @ values / weights.sum())
    return mean, float(weights @ (values - mean) ** 2 / weights.sum())


def peers() -> dict[str, Finder]:
    """Ours, and those that are installed."""
    found: dict[str, Finder] = {"ours": ours, "Perfherder's rule": perfherder}
    for name, make in (("otava", _otava), ("ruptures", _ruptures)):
        try:
            found[name] = make(importlib.import_module)
        except ImportError as error:
            print(f"{name} is left out: {error}; pip install apache-otava ruptures")
    return found


def _otava(load: Callable[[str], Any]) -> Finder:
    series = load("otava.series")

    def find(values: Array) -> list[int]:
        given = series.Series(
            "series",
            None,
            list(range(len(values))),
            {"value": series.Metric(1, 1.0)},
            {"value": [float(v) for v in values]},
            {},
        )
        analysed = given.analyze(series.AnalysisOptions())
        return [int(point.index) for point in analysed.change_points["value"]]

    return find


def _ruptures(load: Callable[[str], Any]) -> Finder:
    ruptures = load("ruptures")

    def find(values: Array) -> list[int]:
        """Exact segmentation of the mean, with Schwarz's penalty at the spread of neighbours."""
        scaled = np.log(values)
        sd = 1.4826 * float(np.median(np.abs(np.diff(scaled)))) / math.sqrt(2.0) or 1e-9
        model = ruptures.Pelt(model="l2", min_size=3, jump=1).fit(scaled / sd)
        return [int(at) for at in model.predict(pen=3.0 * math.log(len(values)))[:-1]]

    return find


def simulated(finders: dict[str, Finder], series: int, seed: int) -> None:
    names = " | ".join(f"-{100 * step:g} %" for step in STEPS)
    print(f"| noise | method | false in 1000 points | {names} |")
    print("|---|---|---|" + "---|" * len(STEPS))
    for kind, noise in NOISE.items():
        for name, find in finders.items():
            rng = np.random.default_rng([seed, 1])
            false, found = 0, dict.fromkeys(STEPS, 0)
            for _ in range(series):
                flat, at = noise(rng), int(rng.integers(20, POINTS - 19))
                false += len(find(100.0 * np.exp(flat)))
                for step in STEPS:
                    moved = flat.copy()
                    moved[at:] -= step
                    places = find(100.0 * np.exp(moved))
                    found[step] += any(abs(place - at) <= NEAR for place in places)
            shares = " | ".join(f"{100 * n / series:.0f}" for n in found.values())
            rate = 1000 * false / (series * POINTS)
            print(f"| {kind} | {name} | {rate:.2f} | {shares} |", flush=True)


def labelled(finders: dict[str, Finder], directory: Path) -> None:
    print("| labelled | labels | method | found | false | missed |\n|---|---|---|---|---|---|")
    files = sorted(directory.glob("*.csv"))
    data: list[tuple[Array, list[int]]] = []
    for path in files:
        points = parse_history(path.read_text(), "csv")
        places = [int(line) for line in path.with_suffix(".labels").read_text().split()]
        data.append((np.array([point.value for point in points]), places))
    for name, find in finders.items():
        hits = false = missed = 0
        for values, labels in data:
            found = find(values)
            hit = [any(abs(place - at) <= NEAR_LABEL for place in found) for at in labels]
            hits, missed = hits + sum(hit), missed + len(hit) - sum(hit)
            false += sum(all(abs(place - at) > NEAR_LABEL for at in labels) for place in found)
        print(f"| {len(files)} series | {hits + missed} | {name} | {hits} | {false} | {missed} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--series", type=int, default=200, help="series of each kind of noise")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--labelled", type=Path, help="directory of NAME.csv and NAME.labels")
    given = parser.parse_args()
    finders = peers()
    if given.labelled is not None:
        labelled(finders, given.labelled)
    else:
        simulated(finders, given.series, given.seed)


if __name__ == "__main__":
    main()
