"""swingbot's bisection, other methods and the bound on the same simulated worlds, in one run.

`python -m benchmarks.bisect --help`; benchmarks/README.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

# started as a file: this directory must not stand in for the standard library's bisect
if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import argparse
import json
import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import detect
from benchmarks.cells import CELLS, FOUR_TESTBOXES, ONE_TESTBOX, Cell
from benchmarks.peers import METHODS, Named, Probe, bound
from tests.simulate import Ended, a_state, bisect_to_the_end, known_noise, with_history
from tests.worlds import Costs, SimulatedBench

COSTS = Costs(build=300.0, boot=60.0, run=60.0)
OURS = ("ours, cold", "ours, history")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One method in one world."""

    claimed: bool
    right: bool  # it claimed, and what it claimed is true
    single: bool  # it named commits, not a set
    stated: float | None
    boots: int
    runs: int  # of ends and search
    confirm_runs: int
    builds: int
    seconds: float  # of the laboratory's clock
    steps: int = 1
    cpu: float = 0.0
    kind: str = ""
    seed: int = 0
    bound_runs: float | None = None


def ours(cell: Cell, bench: SimulatedBench, *, history: bool) -> Ended:
    noise = known_noise(bench, 50.0 if history else 12.0)
    state = a_state(
        bench,
        noise=noise,
        build_cost=COSTS.build,
        boot_cost=COSTS.of_boot(bench.runs),
        testboxes=cell.testboxes,
        layouts=cell.layouts,
    )
    if history:
        state = with_history(bench, state, 50, COSTS)
    return bisect_to_the_end(bench, state, cell.policy, COSTS, ahead=cell.ahead)


def claims_of(ended: Ended) -> tuple[tuple[int, ...], ...]:
    """Each named commit, or the set that holds one."""
    said = ended.conclusion
    if said.kind == "several":
        return tuple((c.idx,) for c in said.culprits)
    return (said.members,) if said.kind in ("culprit", "credible_set") else ()


def right(claims: tuple[tuple[int, ...], ...], bench: SimulatedBench) -> bool:
    """Each claim holds a true change."""
    return bool(claims) and all(set(claim) & set(bench.steps) for claim in claims)


def trial(cell: Cell, method: str, seed: int) -> Trial:
    bench = cell.make(seed)
    limit = bound(bench) if cell.bounded else None
    if method in OURS:
        ended = ours(cell, bench, history=method == OURS[1])
        claims, said = claims_of(ended), ended.conclusion
        return Trial(
            claimed=bool(claims),
            right=right(claims, bench),
            single=all(len(c) == 1 for c in claims),
            stated=said.probability,
            boots=ended.boots,
            runs=ended.runs("ends", "search"),
            confirm_runs=ended.runs("confirm"),
            builds=ended.builds,
            seconds=ended.seconds,
            steps=ended.steps,
            cpu=ended.cpu_seconds,
            kind=said.kind,
            seed=seed,
            bound_runs=limit,
        )
    probe = Probe(bench, COSTS)
    named: Named = METHODS[method](probe)
    return Trial(
        claimed=bool(named.claims),
        right=right(named.claims, bench),
        single=all(len(c) == 1 for c in named.claims),
        stated=None,
        boots=probe.boots,
        runs=probe.runs,
        confirm_runs=0,
        builds=len(probe.built),
        seconds=probe.now,
        kind="named" if named.claims else "none",
        seed=seed,
        bound_runs=limit,
    )


def summary(cell: Cell, method: str, trials: list[Trial]) -> dict[str, Any]:
    """One row of the table; means over worlds.

    `claims` and `right_pct` count worlds; `right_of_claims_pct` those that claimed.
    """

    def mean(of: Callable[[Trial], float]) -> float:
        return float(np.mean([of(t) for t in trials]))

    claimed = [t for t in trials if t.claimed]
    limit = mean(lambda t: t.bound_runs or math.nan) if cell.bounded else None
    runs, confirm = mean(lambda t: t.runs), mean(lambda t: t.confirm_runs)
    kinds: dict[str, int] = {}
    for t in trials:
        kinds[t.kind] = kinds.get(t.kind, 0) + 1
    return {
        "cell": cell.name,
        "method": method,
        "worlds": len(trials),
        "right_pct": 100 * mean(lambda t: t.right),
        "claims": len(claimed),
        "claims_pct": 100 * len(claimed) / len(trials),
        "right_of_claims_pct": 100 * float(np.mean([t.right for t in claimed]))
        if claimed
        else None,
        "single_pct": 100 * mean(lambda t: t.claimed and t.single),
        "stated_pct": 100 * float(np.mean([t.stated for t in claimed if t.stated is not None]))
        if any(t.stated for t in claimed)
        else None,
        "boots": mean(lambda t: t.boots),
        "runs": runs,
        "confirm_runs": confirm,
        "runs_total": runs + confirm,
        "runs_p95": float(np.quantile([t.runs + t.confirm_runs for t in trials], 0.95)),
        "builds": mean(lambda t: t.builds),
        "hours": mean(lambda t: t.seconds) / 3600,
        "bound_runs": limit,
        "ratio": runs / limit if limit else None,
        "ratio_with_confirmation": (runs + confirm) / limit if limit else None,
        "cpu_ms_per_step": 1000 * sum(t.cpu for t in trials) / max(sum(t.steps for t in trials), 1),
        "kinds": dict(sorted(kinds.items())),
        "wrong_seeds": [t.seed for t in claimed if not t.right][:20],
    }


NUMBERS = (  # key, width, digits after the point
    ("right_pct", 6, 1),
    ("claims_pct", 6, 1),
    ("right_of_claims_pct", 6, 1),
    ("boots", 6, 1),
    ("runs", 6, 1),
    ("confirm_runs", 5, 1),
    ("runs_total", 6, 1),
    ("runs_p95", 5, 0),
    ("builds", 6, 1),
    ("hours", 6, 1),
    ("bound_runs", 6, 1),
    ("ratio", 5, 2),
    ("ratio_with_confirmation", 6, 2),
    ("cpu_ms_per_step", 5, 1),
)
TITLES = (
    "right%",
    "claim%",
    "of cl.",
    "boots",
    "runs",
    "+conf",
    "total",
    "p95",
    "builds",
    "hours",
    "bound",
    "ratio",
    "r+conf",
    "ms/st",
)
HEADER = " ".join(
    [
        f"{'cell':<23} {'method':<21} worlds",
        *(f"{t:>{n[1]}}" for t, n in zip(TITLES, NUMBERS, strict=True)),
    ]
)


def line(row: dict[str, Any]) -> str:
    def cell(value: float | None, width: int, digits: int = 1) -> str:
        return f"{value:>{width}.{digits}f}" if value is not None else f"{'-':>{width}}"

    words = f"{row['cell']:<23} {row['method']:<21} {row['worlds']:>6}"
    return " ".join([words, *(cell(row[name], width, digits) for name, width, digits in NUMBERS)])


def side_by_side(table: list[dict[str, Any]]) -> list[str]:
    """Wall time in a group of testboxes against one: the same worlds and seeds."""
    hours = {(row["cell"], row["method"], row["worlds"]): row["hours"] for row in table}
    return [
        f"4 testboxes against 1, {method}: wall time {one and several / one:.2f}"
        for (cell, method, worlds), several in hours.items()
        if cell == FOUR_TESTBOXES and (one := hours.get((ONE_TESTBOX, method, worlds))) is not None
    ]


# --- running --------------------------------------------------------------------------------------


Job = tuple[int, str, int]  # cell, method, seed


def _work(job: Job) -> tuple[Job, Trial | str]:
    cell, method, seed = job
    try:
        return job, trial(CELLS[cell], method, seed)
    # one broken world must not hide the others; it is counted as neither claimed nor right
    except Exception as error:
        return job, f"{type(error).__name__}: {error}"


def run(jobs: list[Job], processes: int, deadline: float) -> Iterator[tuple[Job, Trial | str]]:
    """Results as they come; progress on stderr.

    Stops when the deadline (time.monotonic) has passed.
    """
    began, shown = time.monotonic(), 0.0
    with multiprocessing.get_context("fork").Pool(processes) if processes > 1 else _Here() as pool:
        for done, result in enumerate(pool.imap_unordered(_work, jobs), 1):
            now = time.monotonic()
            if now - shown > 5 or done == len(jobs):
                shown = now
                left = (now - began) / done * (len(jobs) - done)
                print(
                    f"\r{done}/{len(jobs)} bisections, {now - began:.0f} s,"
                    f" about {min(left, deadline - now):.0f} s left   ",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
            yield result
            if now > deadline:
                break
    print(file=sys.stderr)


class _Late(BaseException):
    """The time of the quick form is over; no world may take it for its own failure."""


def _late(*_: object) -> None:
    raise _Late


class _Here:
    """A pool of this one process."""

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def imap_unordered(
        self, work: Callable[[Job], tuple[Job, Trial | str]], jobs: Iterable[Job]
    ) -> Iterator[tuple[Job, Trial | str]]:
        return map(work, jobs)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        action="store_true",
        help="the cells of the target table in under two minutes of one core (default)",
    )
    size.add_argument("--full", action="store_true", help="1000 worlds a cell, all cells; hours")
    parser.add_argument("--worlds", type=int, metavar="N", help="worlds a cell and method")
    parser.add_argument(
        "--cell",
        action="append",
        metavar="NAME",
        help="only cells whose name contains NAME; may be repeated",
    )
    parser.add_argument(
        "--method",
        action="append",
        metavar="NAME",
        help="only methods whose name contains NAME (ours, git, Pinpoint, SPRT); may be repeated",
    )
    parser.add_argument(
        "--first-seed",
        type=int,
        default=1,
        metavar="N",
        help="worlds are seeded N, N+1, ... (default 1)",
    )
    parser.add_argument(
        "--layouts",
        action="store_true",
        help="kernels can be built in other layouts in every cell",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the rows as a list of objects; example: --json bisect.json",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="how bisections ended, and seeds of the wrong ones, below each row",
    )
    return parser.parse_args()


def plan(options: argparse.Namespace) -> list[Job]:
    """Interleaved by seed, so that stopping early leaves every row with as many worlds."""
    cells = [
        i
        for i, c in enumerate(CELLS)
        if (any(n in c.name for n in options.cell) if options.cell else c.table or options.full)
    ]
    if not cells and not detects(options):
        raise SystemExit(
            f"no cell has {' or '.join(options.cell)} in its name;"
            f" cells are {', '.join(c.name for c in CELLS)}"
        )
    methods = [
        m for m in (*OURS, *METHODS) if not options.method or any(n in m for n in options.method)
    ]
    if options.quick or not (options.full or options.method or options.worlds):
        methods = (
            [m for m in methods if m in OURS or m.startswith(("git N=5", "git N=10, fresh"))]
            if not options.method
            else methods
        )
    worlds = options.worlds or (1000 if options.full else 10_000)
    seeds = range(options.first_seed, options.first_seed + worlds)
    return [(c, m, s) for s in seeds for c in cells for m in methods if m in OURS or CELLS[c].peers]


def detects(options: argparse.Namespace) -> bool:
    return any(n in detect.NAME for n in options.cell) if options.cell else not options.method


def main() -> None:
    options = _arguments()
    if options.layouts:
        CELLS[:] = [replace(cell, layouts=True) for cell in CELLS]
    deadline = time.monotonic() + (math.inf if options.worlds or options.full else 95.0)
    rows: dict[tuple[int, str], list[Trial]] = {}
    broken: dict[tuple[int, str], list[str]] = {}
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(
        signal.ITIMER_REAL, 0 if math.isinf(deadline) else deadline - time.monotonic() + 5
    )
    try:
        for (cell, method, seed), result in run(plan(options), options.jobs, deadline):
            if isinstance(result, str):
                broken.setdefault((cell, method), []).append(f"seed {seed}: {result}")
            else:
                rows.setdefault((cell, method), []).append(replace(result, seed=seed))
    except _Late:
        print(
            "\nout of time: the table omits the bisection that was still running;"
            " --worlds N waits for all",
            file=sys.stderr,
        )
    signal.setitimer(signal.ITIMER_REAL, 0)
    order = {m: i for i, m in enumerate((*OURS, *METHODS))}
    table = []
    if rows or broken:
        print(HEADER)
    for cell, method in sorted({*rows, *broken}, key=lambda k: (k[0], order[k[1]])):
        trials = sorted(rows.get((cell, method), []), key=lambda t: t.seed)
        if trials:
            table.append(row := summary(CELLS[cell], method, trials))
            print(line(row))
            if options.verbose:
                print(f"    ended: {row['kinds']}; wrong claims in seeds {row['wrong_seeds']}")
        for text in broken.get((cell, method), [])[:3]:
            print(
                f"    FAILED ({len(broken[cell, method])} of these worlds): {CELLS[cell].name},"
                f" {method}, {text}"
            )
    for text in side_by_side(table):
        print(text)
    if detects(options):
        found = detect.rows(options.first_seed, options.worlds or (10_000 if options.full else 100))
        table += found
        print("\n".join(detect.line(row) for row in found))
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
