"""Steps in histories: swingbot compared with Apache Otava, ruptures and Mozilla's Perfherder rule.

    python -m benchmarks.histories [--series 200] [--seed 1] [--labelled DIRECTORY]

Simulated: flat series of 80 points (robust sd 0.7 %) of several kinds of noise,
with and without one step. A step counts as found within 3 points of its place;
what is found in the flat series is false.

Labelled: DIRECTORY holds `NAME.csv` (columns x and value, oldest first) and `NAME.labels` (the
number of the first point of each new level, from 0, one a line; empty: nothing changed).
A label is found within 5 points, each by one find; every other find is false.

Peers run where they are installed; swingbot needs none of them. How to install them without
touching this project's environment: benchmarks/README.md, "Histories".
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from swingbot.core.stats.findings import look
from swingbot.core.stats.history import robust_sd
from swingbot.core.stats.history_file import parse_history
from swingbot.core.stats.parse import BadSamples
from tests.calibration.score import wilson

Array = npt.NDArray[np.float64]
Finder = Callable[[Array], list[int]]

POINTS: Final = 80
SD: Final = 0.007
STEPS: Final = (0.01, 0.02, 0.03, 0.05)
NEAR, NEAR_LABEL = 3, 5
# Defaults of Perfherder's rule (mozilla/treeherder, treeherder/perfalert): points before a place,
# at least and at most, points from it on, and the t value of an alert.
BACK_LEAST, BACK_MOST, FORE, T_ALERT = 12, 24, 12, 7.0
RECORDED: Final = Path(__file__).parents[1] / "tests" / "calibration" / "vm-tcg.json"


def independent(rng: np.random.Generator) -> Array:
    return rng.normal(0.0, SD, POINTS)


def alike(rng: np.random.Generator) -> Array:
    """Neighbours alike by 0.3, and 3 points in 100 five spreads wide."""
    wild = np.where(rng.random(POINTS) < 0.03, rng.normal(0.0, 5.0, POINTS), 0.0)
    return SD * (_autoregression(rng, 0.3) + wild)


def wandering(rng: np.random.Generator) -> Array:
    """A level that wanders (0.7 from point to point) below independent noise with heavy tails."""
    return SD * (0.6 * _autoregression(rng, 0.7) + 0.8 * rng.standard_t(4, POINTS) / math.sqrt(2.0))


def recorded(rng: np.random.Generator) -> Array:
    """Boots of one kernel, drawn with replacement, three successive runs of a boot at a time."""
    blocks = _boots()
    drawn: Array = blocks[rng.integers(len(blocks), size=-(-POINTS // blocks.shape[1]))].ravel()
    return drawn[:POINTS] * SD


@functools.cache
def _boots() -> Array:
    """Recorded boots (lines) of both metrics of a testbox, in robust sds from the metric's median.

    Logarithms; a column a run.
    """
    metrics = [np.log(runs) for runs in json.loads(RECORDED.read_text())["boots"].values()]
    centred = [metric - np.median(metric) for metric in metrics]
    return np.concatenate([metric / robust_sd(metric.ravel()) for metric in centred])


def _autoregression(rng: np.random.Generator, r: float) -> Array:
    out = rng.normal(0.0, 1.0, POINTS)
    for n in range(1, POINTS):
        out[n] = r * out[n - 1] + math.sqrt(1.0 - r * r) * out[n]
    return np.asarray(out)


NOISE: Final = {
    "independent": independent,
    "alike 0.3, 3 % wild": alike,
    "wanders, heavy tails": wandering,
    "recorded boots": recorded,
}


def ours(values: Array) -> list[int]:
    return [change.at for change in look([float(v) for v in values]).changes]


def perfherder(values: Array) -> list[int]:
    """Mozilla's rule: t between the points before and after each place, as its source defines it.

    The means weigh points linearly less the further away they are, the variances are about these
    means. The window before a place grows from 12 to 24 points since the last t above the
    threshold. A step is where t is above it and above both neighbours'.
    """
    t, back = np.zeros(len(values)), np.zeros(len(values), dtype=int)
    since = 0
    for at in range(1, len(values)):
        back[at] = min(at, max(since, BACK_LEAST), BACK_MOST)
        before, after = values[at - back[at] : at][::-1], values[at : at + FORE]
        (m0, v0), (m1, v1) = _weighted(before), _weighted(after)
        spread = math.sqrt(v0 / len(before) + v1 / len(after))
        t[at] = abs(m1 - m0) / spread if spread > 0 else math.inf if m1 != m0 else 0.0
        since = 0 if t[at] > T_ALERT else since + 1
    return [
        at
        for at in range(BACK_LEAST, len(values) - FORE + 1)
        if back[at] >= BACK_LEAST and t[at] > T_ALERT and t[at] >= t[at - 1 : at + 2].max()
    ]


def _weighted(values: Array) -> tuple[float, float]:
    """Mean, in which the nearest point weighs 1 and those beyond linearly less; and variance."""
    n = len(values)
    weights = (n - np.arange(n)) / n
    mean = float(weights @ values / weights.sum())
    return mean, float(((values - mean) ** 2).sum() / (n - 1)) if n > 1 else 0.0


def peers() -> dict[str, Finder]:
    """Ours, and those that are installed."""
    found: dict[str, Finder] = {"ours": ours, "Perfherder's rule": perfherder}
    for name, make in (("otava", _otava), ("ruptures", _ruptures)):
        try:
            found[name] = make(importlib.import_module)
        except ImportError as error:
            hint = 'benchmarks/README.md, "Histories", says how to install it'
            print(f"{name} is left out ({error}); {hint}", file=sys.stderr)
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
        scaled = np.log(values) if values.min() > 0 else values
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
            shares = " | ".join(_share(n, series, 100, 0) for n in found.values())
            rate = _share(false, series * POINTS, 1000, 2)
            print(f"| {kind} | {name} | {rate} | {shares} |", flush=True)


def _share(count: int, of: int, unit: int, digits: int) -> str:
    """A share in `unit`ths with its 95 % interval (Wilson 1927)."""
    low, high = wilson(min(count, of), of)
    return (
        f"{unit * count / max(of, 1):.{digits}f}"
        f" ({unit * low:.{digits}f} .. {unit * high:.{digits}f})"
    )


def labelled(finders: dict[str, Finder], directory: Path) -> None:
    data = [read_labelled(path) for path in sorted(directory.glob("*.csv"))]
    if not data:
        raise SystemExit(f"{directory} holds no NAME.csv; see benchmarks/README.md, Histories")
    points, labels = (sum(len(one[part]) for one in data) for part in (0, 1))
    print(f"{len(data)} series, {points} points, {labels} labels\n")
    print("| method | found | false | missed | found, % | false in 1000 points |")
    print("|---|---|---|---|---|---|")
    for name, find in finders.items():
        hits = false = 0
        for values, places in data:
            hit, wrong = scored(find(values), places)
            hits, false = hits + hit, false + wrong
        shares = f"{_share(hits, labels, 100, 0)} | {_share(false, points, 1000, 1)}"
        print(f"| {name} | {hits} | {false} | {labels - hits} | {shares} |", flush=True)


def read_labelled(path: Path) -> tuple[Array, list[int]]:
    """The values of a CSV file and the places in the file of labels beside it.

    Exits with a sentence if either cannot be read.
    """
    labels = path.with_suffix(".labels")
    try:
        values = np.array([point.value for point in parse_history(path.read_text(), "csv")])
        places = [int(line) for line in labels.read_text().split()]
    except (BadSamples, OSError, ValueError) as error:
        raise SystemExit(f"{path} and {labels.name}: {error}") from None
    if not all(0 < place < len(values) for place in places):
        raise SystemExit(f"{labels}: a label is not between 1 and {len(values) - 1}")
    return values, sorted(places)


def scored(found: Sequence[int], labels: Sequence[int]) -> tuple[int, int]:
    """Labels that were found, and finds that are false; the nearest pairs are matched first."""
    pairs = sorted(
        (abs(place - label), n, k)
        for n, place in enumerate(found)
        for k, label in enumerate(labels)
        if abs(place - label) <= NEAR_LABEL
    )
    finds, hits = set[int](), set[int]()
    for _, n, k in pairs:
        if n not in finds and k not in hits:
            finds.add(n)
            hits.add(k)
    return len(hits), len(found) - len(finds)


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
