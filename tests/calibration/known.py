"""Worlds in which the engine is known to be wrong, with how often: `known.json`.

They fail only when they get worse.

`python -m tests.calibration.known [--worlds N] [--jobs N] [--family NAME]` measures the listed
families again and writes their figures; `python -m tests.calibration.compose --known` those of the
listed ingredients of composed worlds. Either is put on the list, or taken off it, by hand:
{} in place of the figures is enough for the command to fill in.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy.stats import betabinom

from tests.calibration.families import FAMILIES
from tests.calibration.score import Verdict, claims, too_sure
from tests.calibration.table import run

KNOWN = Path(__file__).parent / "known.json"
# A listed family looks fixed when P(at least as many wrong claims, if claims are honest) is above.
HONEST = 0.05
ENOUGH = 20  # claims from which it may be said


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How a family did when it was measured: counts."""

    worlds: int = 0
    claims: int = 0
    wrong: int = 0  # of the claims
    stated_wrong: float = 0.0  # how many would have been if what was stated were true
    intervals: int = 0
    missed: int = 0  # intervals that did not hold the difference of the kernels that were booted


def figures(verdicts: Sequence[Verdict]) -> Figures:
    said = claims(verdicts)
    held = [images for v in verdicts for images, _ in v.intervals]
    return Figures(
        worlds=len(verdicts),
        claims=len(said),
        wrong=sum(not right for _, right in said),
        stated_wrong=round(sum(1 - stated for stated, _ in said), 2),
        intervals=len(held),
        missed=sum(not h for h in held),
    )


Known = dict[str, dict[str, Figures]]  # "families" or "ingredients" -> name -> figures


def known(path: Path = KNOWN) -> Known:
    return {
        kind: {name: Figures(**given) for name, given in listed.items()}
        for kind, listed in json.loads(path.read_text()).items()
    }


def worse(hits: int, of: int, known_hits: int, known_of: int) -> float:
    """P(at least `hits` of `of`, at the known rate): small if the rate got worse.

    The share itself is known from `known_of` trials only: beta-binomial,
    with Jeffreys' prior (1/2, 1/2).
    """
    if not of:
        return 1.0
    return float(betabinom.sf(hits - 1, of, known_hits + 0.5, known_of - known_hits + 0.5))


def got_worse(verdicts: Sequence[Verdict], before: Figures) -> float:
    """The smaller of two: claims that are wrong, and intervals that miss.

    Of 1 if there are none.
    """
    now = figures(verdicts)
    return min(
        worse(now.wrong, now.claims, before.wrong, before.claims),
        worse(now.missed, now.intervals, before.missed, before.intervals),
    )


def mended(verdicts: Sequence[Verdict]) -> bool:
    """Whether a listed family can be removed from the list: only a hint,
    since a few worlds prove nothing.
    """
    said = claims(verdicts)
    return len(said) >= ENOUGH and too_sure(said) >= HONEST


def write(listed: Known, path: Path = KNOWN) -> None:
    """A line each."""
    kinds = []
    for kind, figures_of in listed.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(asdict(f))}" for name, f in figures_of.items()]
        kinds.append(f" {json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n }")
    path.write_text("{\n" + ",\n".join(kinds) + "\n}\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.known", description=__doc__)
    parser.add_argument("--worlds", type=int, default=60, metavar="N", help="of each family")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--family", action="append", metavar="NAME", help="name contains NAME")
    # neither those of `make calibrate` (from 1) nor those of the table (from 1000)
    parser.add_argument("--first-seed", type=int, default=2000, metavar="N")
    options = parser.parse_args()
    listed = known()
    chosen = [
        i
        for i, f in enumerate(FAMILIES)
        if f.name in listed["families"]
        and (not options.family or any(n in f.name for n in options.family))
    ]
    seeds = range(options.first_seed, options.first_seed + options.worlds)
    for i, verdicts in run([(i, s) for s in seeds for i in chosen], options.jobs).items():
        listed["families"][FAMILIES[i].name] = figures(verdicts)
        if mended(verdicts):
            print(f"{FAMILIES[i].name}: honest in {len(verdicts)} worlds; take it off the list")
    write(listed)


if __name__ == "__main__":
    main()
