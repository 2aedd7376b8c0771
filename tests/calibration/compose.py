"""Worlds composed at random of all ingredients, and how wrong the engine is in them.

    # the table, and the ten worst worlds
    python -m tests.calibration.compose --worlds 300 --jobs 2 [--shrink]
    # 3000 worlds
    CALIBRATE=full python -m tests.calibration.compose --jobs 2
    # one of them, in full
    python -m tests.calibration.compose --world SEED

SEED=N repeats a run; without it the first seed comes from the commit that is checked out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from tests.calibration.families import Family
from tests.calibration.ingredients import EXCLUDE, INGREDIENTS, plain
from tests.calibration.known import figures, known, write
from tests.calibration.score import Verdict, claims, judge, too_sure, z_score
from tests.worlds import Costs, SimulatedBench

ROOT = Path(__file__).parents[2]
FINDING = 0.001  # P(so wrong or worse | what was stated) below which a finding is written down
MISSED = 0.06  # share of the printed intervals that may miss the difference of the booted kernels
DENIED = 0.05  # share of "not reproduced" that may be wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    seed: int
    ingredients: tuple[str, ...]
    family: Family
    bench: SimulatedBench


def compose(seed: int, without: Iterable[str] = ()) -> Composed:
    """The world of this seed.

    Each ingredient draws from its own numbers: without one of them the others stay as they are.
    """
    recipe = plain(_rng(seed, "plain"))
    names: list[str] = []
    for name, (share, change) in INGREDIENTS.items():
        rng = _rng(seed, name)
        excluded = any(later == name and first in names for first, later in EXCLUDE)
        if rng.random() < share and not excluded and name not in without:
            change(recipe, rng)
            names.append(name)
    steps = {commit: math.expm1(size) for commit, size in sorted(recipe.steps.items())}
    first = min(steps, default=None)
    bench = SimulatedBench(
        commits=recipe.commits,
        culprit=first,
        effect=steps.pop(first) if first is not None else 0.0,
        others=steps,
        run_noise=recipe.run_noise,
        boot_noise=recipe.boot_noise,
        seed=seed,
        **recipe.bench,
    )
    family = Family(name=f"composed {seed}", make=lambda _: bench, **recipe.family)
    return Composed(seed=seed, ingredients=tuple(names), family=family, bench=bench)


def _rng(seed: int, name: str) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def first_seed(environment: str | None = os.environ.get("SEED")) -> int:
    """SEED if it is set, else of the commit that is checked out.

    Without git of the engine's source.
    """
    if environment:
        return int(environment)
    return int(_version()[:7], 16) * 10_000  # further apart than a run has worlds


def _version() -> str:
    """40 hexadecimal digits or more."""
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        sources = sorted((ROOT / "master" / "swingbot" / "core" / "bisect").glob("*.py"))
        return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


# --- many of them ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    ingredients: tuple[str, ...]
    culprits: tuple[int, ...]  # that may be named
    verdict: Verdict

    @property
    def wrong(self) -> bool:
        """A claim that is, or a change that is called not reproduced."""
        return self.verdict.right is False

    @property
    def doubt(self) -> float:
        """That was stated, of what is wrong."""
        return DENIED if self.verdict.stated is None else 1 - self.verdict.stated


def judged(seed: int, without: Sequence[str] = ()) -> Judged:
    world = compose(seed, without)
    return Judged(
        ingredients=world.ingredients,
        culprits=tuple(world.bench.changes(world.family.min_effect_pct / 200)),
        verdict=judge(world.family, seed),
    )


def draw(first: int, worlds: int, seconds: float) -> list[Judged]:
    """In this process: so many worlds, or as many as are begun within these seconds of processor
    time, so that a busy host draws no fewer."""
    end = time.process_time() + seconds
    found = []
    for seed in range(first, first + worlds):
        if time.process_time() > end:
            break
        found.append(judged(seed))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Worlds with an ingredient, or all."""

    name: str
    worlds: int
    claims: int
    wrong: int
    stated_wrong: float  # how many would be wrong if what was stated were true
    z: float
    p: float  # of so many wrong claims or more
    intervals: int
    missed: int
    p_intervals: float
    denied: int  # a change of the smallest size or more was called not reproduced
    not_reproduced: int
    p_denied: float
    boots: float  # mean
    seeds: tuple[int, ...]  # of what is wrong

    @property
    def worst(self) -> float:
        return min(self.p, self.p_intervals, self.p_denied)


def group(name: str, found: Sequence[Judged]) -> Group:
    verdicts = [j.verdict for j in found]
    said = claims(verdicts)
    held = [images for v in verdicts for images, _ in v.intervals]
    missed = sum(not h for h in held)
    none = [v for v in verdicts if v.kind == "not_reproduced"]
    denied = sum(not v.right for v in none)
    return Group(
        name=name,
        worlds=len(found),
        claims=len(said),
        wrong=sum(not right for _, right in said),
        stated_wrong=sum(1 - stated for stated, _ in said),
        z=z_score(said),
        p=too_sure(said),
        intervals=len(held),
        missed=missed,
        p_intervals=float(binom.sf(missed - 1, len(held), MISSED)),
        denied=denied,
        not_reproduced=len(none),
        p_denied=float(binom.sf(denied - 1, len(none), DENIED)),
        boots=sum(v.boots for v in verdicts) / max(len(verdicts), 1),
        seeds=tuple(j.verdict.seed for j in found if j.wrong),
    )


def groups(found: Sequence[Judged], wrong: Sequence[str] = ()) -> list[Group]:
    """All worlds, those of each ingredient that is known to be `wrong`,
    and among the worlds without any of these each other ingredient's, the least honest first.
    """
    sound = [j for j in found if not set(wrong) & set(j.ingredients)]
    rest = [
        group(name, [j for j in sound if name in j.ingredients])
        for name in INGREDIENTS
        if name not in wrong
    ]
    return [
        group("all", found),
        *(group(name, [j for j in found if name in j.ingredients]) for name in wrong),
        *([group("all the rest", sound)] if wrong else []),
        *sorted(rest, key=lambda g: (g.worst, g.z)),
    ]


def findings(found: Sequence[Judged], wrong: Sequence[str] = ()) -> list[Group]:
    return [g for g in groups(found, wrong) if g.worst < FINDING]


def write_findings(first: int, found: Sequence[Judged], directory: Path) -> Path | None:
    """What is too weak to fail and too strong to forget: JSON, one file a run.

    None if there is nothing.
    """
    weak = findings(found, [*known()["ingredients"]])
    broken = [asdict(j) for j in found if j.verdict.error]
    if not weak and not broken:
        return None
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"composed-{first}.json"
    report = {"seed": first, "worlds": len(found), "groups": [asdict(g) for g in weak]}
    path.write_text(json.dumps({**report, "failed": broken}, indent=1) + "\n")
    return path


HEADER = (
    "| ingredient | worlds | claims | wrong | stated wrong | z | p "
    "| intervals that miss | p | wrongly not reproduced | p | boots |"
)


def table(found: Sequence[Judged], wrong: Sequence[str] = ()) -> Iterator[str]:
    """Markdown."""
    yield HEADER
    yield "|---" * HEADER.count(" | ") + "|---|"
    for g in groups(found, wrong):
        cells = [
            g.name,
            str(g.worlds),
            str(g.claims),
            str(g.wrong),
            f"{g.stated_wrong:.2f}",
            f"{g.z:+.1f}",
            f"{g.p:.1g}",
            f"{g.missed} of {g.intervals}",
            f"{g.p_intervals:.1g}",
            f"{g.denied} of {g.not_reproduced}",
            f"{g.p_denied:.1g}",
            f"{g.boots:.0f}",
        ]
        yield "| " + " | ".join(cells) + " |"


def worst(found: Sequence[Judged], most: int = 10) -> list[Judged]:
    """Worlds that broke the engine, then what is wrong: the surest first,
    of equally sure ones those of fewest ingredients.
    """
    bad = [j for j in found if j.verdict.error or j.wrong]
    return sorted(
        bad,
        key=lambda j: (
            j.verdict.error is None,
            round(j.doubt, 3),
            len(j.ingredients),
        ),
    )[:most]


def shrunk(bad: Judged, again: Callable[[int, Sequence[str]], Judged] = judged) -> Judged:
    """The same world without the ingredients that it does not need to be wrong:
    each is left out in turn.
    """
    without: list[str] = []
    for name in bad.ingredients:
        tried = again(bad.verdict.seed, [*without, name])
        if tried.wrong or tried.verdict.error:
            without.append(name)
            bad = tried
    return bad


def line(j: Judged) -> str:
    v = j.verdict
    if v.error:
        said = f"FAILED: {v.error}"
    else:
        stated = f"{100 * v.stated:.2f} %" if v.stated is not None else "-"
        named, true = _short(v.named), _short(j.culprits)
        verdict = {True: "right", False: "wrong", None: "no claim"}[v.right]
        said = f"{v.kind} {named} at {stated}, {verdict}; true: {true}; {v.boots} boots"
    return f"{v.seed}: {said}; {', '.join(j.ingredients) or 'plain'}"


def _short(commits: Sequence[int]) -> str:
    shown = ", ".join(str(c) for c in commits[:6])
    return (shown or "none") + (f", ... ({len(commits)})" if len(commits) > 6 else "")


def describe(seed: int) -> Iterator[str]:
    """A world in full: what differs from a plain one, and what came of it."""
    world = compose(seed)
    for owner, given in (("bench", asdict(world.bench)), ("family", _given(world.family))):
        defaults = {f.name: f.default for f in fields(getattr(world, owner))}
        for name, value in given.items():
            if name != "name" and value != defaults[name] and value not in ({}, (), Costs()):
                yield f"  {name} = {value}"
    yield line(judged(seed))


def _given(family: Family) -> dict[str, Any]:
    return {f.name: getattr(family, f.name) for f in fields(family) if f.name != "make"}


def run(seeds: Sequence[int], processes: int) -> list[Judged]:
    """With progress on stderr."""
    began, found = time.monotonic(), []
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for done, result in enumerate(pool.imap_unordered(judged, seeds), 1):
            found.append(result)
            left = (time.monotonic() - began) / done * (len(seeds) - done)
            wrong = sum(j.wrong for j in found)
            print(
                f"\r{done}/{len(seeds)} worlds, {wrong} wrong, about {left:.0f} s left   ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(file=sys.stderr)
    return sorted(found, key=lambda j: j.verdict.seed)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.calibration.compose",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    full = os.environ.get("CALIBRATE") == "full"
    parser.add_argument(
        "--worlds", type=int, default=3000 if full else 60, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument(
        "--known", action="store_true", help="write the figures of listed ingredients"
    )
    parser.add_argument("--shrink", action="store_true", help="leave out what is not needed")
    parser.add_argument("--world", type=int, metavar="SEED", help="describe one world, and bisect")
    options = parser.parse_args()
    if options.world is not None:
        print("\n".join(describe(options.world)))
        return
    first = first_seed()
    print(f"SEED={first}, {options.worlds} worlds", flush=True)
    found = run(range(first, first + options.worlds), options.jobs)
    listed = known()
    print("\n".join(table(found, [*listed["ingredients"]])))
    if options.known:
        for name in listed["ingredients"]:
            verdicts = [j.verdict for j in found if name in j.ingredients]
            listed["ingredients"][name] = figures(verdicts)
        write(listed)
    bad = worst(found)
    print(f"\nThe {len(bad)} worst:")
    for j in bad:
        print(line(j))
        if options.shrink and len((small := shrunk(j)).ingredients) < len(j.ingredients):
            print(f"    still wrong with: {line(small).split(': ', 1)[1]}", flush=True)


if __name__ == "__main__":
    main()
