"""The calibration table.

`python -m tests.calibration.table [--worlds N] [--family NAME] [--jobs N]`;
CALIBRATE=full makes it with all worlds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import defaultdict

from tests.calibration.families import FAMILIES, Family
from tests.calibration.score import BINS, Verdict, claims, judge, kinds, too_sure, wilson, z_score

Job = tuple[int, int]  # family, seed


def _work(job: Job) -> tuple[Job, Verdict]:
    return job, judge(FAMILIES[job[0]], job[1])


def run(jobs: list[Job], processes: int) -> dict[int, list[Verdict]]:
    began, found = time.monotonic(), defaultdict(list)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for done, ((family, _), verdict) in enumerate(pool.imap_unordered(_work, jobs), 1):
            found[family].append(verdict)
            if done % 10 == 0 or done == len(jobs):
                spent = time.monotonic() - began
                print(
                    (
                        f"\r{done}/{len(jobs)} bisections,"
                        f" about {spent / done * (len(jobs) - done):.0f} s left   "
                    ),
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
    print(file=sys.stderr)
    return {
        family: sorted(verdicts, key=lambda v: v.seed) for family, verdicts in sorted(found.items())
    }


def share(right: int, of: int) -> str:
    return f"{100 * right / of:.1f} ({right}/{of})" if of else "-"


HEADER = (
    "| world | bisections | named % | right % of those | stated % | z | honest |"
    " intervals: images / commit % | none, right | boots | ended |"
)


def row(name: str, verdicts: list[Verdict]) -> str:
    """Markdown.

    Honest: so many wrong claims or more would come in at least 1 of 1000 such tables' rows if what
    was stated were true.
    """
    said = claims(verdicts)
    stated = f"{100 * sum(p for p, _ in said) / len(said):.2f}" if said else "-"
    tail = too_sure(said)
    honest = "yes" if tail >= 0.001 else f"**NO** (p = {tail:.1g})"
    held = [i for v in verdicts for i in v.intervals]
    none = [v for v in verdicts if v.kind == "not_reproduced"]
    cells = [
        name,
        str(len(verdicts)),
        f"{100 * len(said) / len(verdicts):.0f}",
        share(sum(r for _, r in said), len(said)),
        stated,
        f"{z_score(said):+.1f}" if said else "-",
        honest,
        (
            f"{100 * sum(a for a, _ in held) / len(held):.1f} /"
            f" {100 * sum(b for _, b in held) / len(held):.1f} of {len(held)}"
        )
        if held
        else "-",
        share(sum(bool(v.right) for v in none), len(none)),
        f"{sum(v.boots for v in verdicts) / len(verdicts):.0f}",
        kinds(verdicts),
    ]
    return "| " + " | ".join(cells) + " |"


def bins(name: str, verdicts: list[Verdict]) -> list[str]:
    lines = []
    for low, high in BINS:
        said = claims(verdicts, low, high)
        right = sum(r for _, r in said)
        between = " .. ".join(f"{100 * p:.1f}" for p in wilson(right, len(said)))
        stated = f"{100 * sum(p for p, _ in said) / len(said):.2f}" if said else "-"
        lines.append(
            f"| {name} | {100 * low:.0f} .. {100 * high:.0f} | {len(said)} | {stated} |"
            f" {share(right, len(said))} | {between} | {z_score(said):+.1f} |"
        )
    return lines


def pooled(found: dict[int, list[Verdict]]) -> list[str]:
    """Of all worlds together: the bins and the intervals."""
    every = [v for verdicts in found.values() for v in verdicts]
    held = [i for v in every for i in v.intervals]
    lines = [
        "",
        "| worlds | stated | claims | mean stated % | right % | 95 % interval | z |",
        "|---|---|---|---|---|---|---|",
        *bins("all", every),
    ]
    for which, hits in (
        ("kernels that were booted", sum(a for a, _ in held)),
        ("commits", sum(b for _, b in held)),
    ):
        low, high = wilson(hits, len(held))
        lines.append(
            "\n"
            f"Intervals that hold the true difference of the {which}: {share(hits, len(held))} %,"
            f" 95 % interval {100 * low:.1f} .. {100 * high:.1f}"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.table", description=__doc__)
    parser.add_argument(
        "--worlds",
        type=int,
        metavar="N",
        help="bisections of each family (default: 1; with CALIBRATE=full 200)",
    )
    parser.add_argument(
        "--family",
        action="append",
        metavar="NAME",
        help="only families whose name contains NAME; may be repeated",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--first-seed", type=int, default=1000, metavar="N")
    options = parser.parse_args()
    full = os.environ.get("CALIBRATE") == "full"

    def worlds(family: Family) -> int:
        return options.worlds or (family.full if full else 1)

    chosen = [
        i
        for i, f in enumerate(FAMILIES)
        if not options.family or any(n in f.name for n in options.family)
    ]
    seeds = range(
        options.first_seed,
        options.first_seed + max((worlds(FAMILIES[i]) for i in chosen), default=0),
    )
    found = run(
        [(i, s) for s in seeds for i in chosen if s < options.first_seed + worlds(FAMILIES[i])],
        options.jobs,
    )
    print(HEADER + "\n" + "|---" * HEADER.count(" | ") + "|---|")
    for i, verdicts in found.items():
        print(row(FAMILIES[i].name, verdicts))
    print("\n".join(pooled(found)))
    for i, verdicts in found.items():
        wrong = [v.seed for v in verdicts if v.stated is not None and not v.right]
        failed = [f"{v.seed} ({v.error})" for v in verdicts if v.error]
        if wrong or failed:
            print(
                f"{FAMILIES[i].name}: wrong claims in seeds {wrong[:12]}"
                + (f"; FAILED: {'; '.join(failed[:3])}" if failed else ""),
                file=sys.stderr,
            )


if __name__ == "__main__":
    main()
