"""Measure what each commit of a series does, with the real worker: the figures in plants.yaml and
README.md come from here.

Every kernel is built and booted by `swingbot-worker`, each k-th boot with the k-th perturbation,
and compared with its parent boot by boot. Results are kept in --out by image,
so that it can be stopped and started again, and commits that do not change the image are not booted
twice.

By hand:
    python -m tests.demo.measure --repo /tmp/linux.git --out /tmp/measured --seed 3 --boots 2
    python -m tests.demo.measure --repo /tmp/linux.git --out /tmp/measured \\
        --alone plant-large plant-slub
    python -m tests.demo.measure --repo /tmp/linux.git --out /tmp/measured --testbox vm-mm \\
        --jobs vm-swap --boots 10 --alone plant-reclaim
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob, spec_sha256
from swingbot_jobs.language.program import find_metric, load_programs
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.testbox.file import load_all
from tests.demo import process, tree

CHECKOUT = Path(__file__).resolve().parents[2]
JOBS = ("vm-netperf", "vm-hackbench", "vm-page-fault")
PROGRAMS = load_programs(CHECKOUT / "jobs" / "programs")

Levels = dict[str, dict[int, float]]  # "<unit job> <metric>" -> k -> mean of the runs of that boot


@dataclass(frozen=True, slots=True)
class Lab:
    """What is measured, and where its results are kept."""

    repo: Path
    out: Path
    unit_jobs: tuple[UnitJob, ...]
    testbox: str
    kconfig: str
    boots: int

    def worker(self, *words: str | Path) -> dict[str, Any]:
        """Run swingbot-worker, answer its outcome: a kernel that does not build or boot is one,
        too.
        """
        _, out, err = process.attempt(
            [Path(sys.executable).parent / "swingbot-worker", *words, "--json"]
        )
        try:
            outcome = json.loads(out)
        except ValueError:
            raise SystemExit(
                f"swingbot-worker {words[0]} gave no outcome: {(err or out).strip()[-500:]}"
            ) from None
        if outcome["status"] == "infra":
            raise SystemExit(f"the lab failed, start again to go on: {outcome['reason']}")
        assert isinstance(outcome, dict)
        return outcome

    def levels(self, commit: str) -> tuple[str, Levels]:
        """Image of a commit (empty if it does not build) and its levels (empty if it does not
        boot).
        """
        folder = self.out / "builds" / commit
        kept = folder / "outcome.json"
        outcome: dict[str, Any] = (
            json.loads(kept.read_text()) if kept.exists() else {"status": "infra"}
        )
        if outcome["status"] == "infra":
            words = ("--repo", self.repo, "--commit", commit, "--kconfig", self.kconfig)
            outcome = self.worker("build", *words, "--out", folder)
        if outcome["status"] != "built":
            say(f"  {commit[:12]} {outcome['status']}: {outcome['reason']}")
            return "", {}
        image = str(outcome["kernel_build"]["image_sha256"])
        levels: Levels = {}
        for k in range(self.boots):
            for name, value in self._boot(
                image, outcome["kernel_build"]["build_key"], folder / "bzImage", k
            ).items():
                levels.setdefault(name, {})[k] = value
        return image, levels

    def _boot(self, image: str, build_key: str, file: Path, k: int) -> dict[str, float]:
        kept = self.out / "boots" / spec_sha256(self.unit_jobs)[:12] / image / f"{k}.json"
        if kept.exists():
            found: dict[str, float] = json.loads(kept.read_text())
            return found
        kept.parent.mkdir(parents=True, exist_ok=True)
        order = {
            "version": 1,
            "kind": "boot",
            "order": "o0",
            "attempt": "a0",
            "kernel": {"build_key": build_key, "image": str(file.resolve())},
            "testbox": self.testbox,
            "k": k,
            "unit_jobs": codec.plain(self.unit_jobs),
        }
        folder = kept.with_suffix(".boot")
        order_file = kept.with_suffix(".order.json")
        order_file.write_text(json.dumps(order))
        outcome = self.worker("boot", "--order", order_file, "--out", folder)
        if outcome["status"] != "up":
            say(f"  boot {k}: {outcome['status']}: {outcome['reason']}")
            values: dict[str, float] = {}
        else:
            values = dict(self._parsed(folder / "results.tar"))
        kept.write_text(json.dumps(values))
        return values

    def _parsed(self, results: Path) -> Iterator[tuple[str, float]]:
        for name, values in _by_metric(parse_results(results, self.unit_jobs, PROGRAMS)).items():
            yield name, statistics.fmean(values)


def _by_metric(runs: Sequence[Any]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for run in runs:
        for metric, samples in run.samples.items():
            if (known := find_metric(PROGRAMS, metric)) and known.headline:
                values.setdefault(f"{run.unit_job} {metric}", []).extend(samples)
    return values


def change_pct(base: Mapping[int, float], head: Mapping[int, float]) -> tuple[float, float] | None:
    """Mean and half range of the change, per cent, over the boots that both have.

    None if there is none.
    """
    ratios = [math.log(head[k] / base[k]) for k in base if k in head]
    if not ratios:
        return None
    return 100 * math.expm1(statistics.fmean(ratios)), 50 * (max(ratios) - min(ratios))


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def table(rows: Sequence[tuple[str, Levels, Levels]]) -> str:
    """Rows of (name, base, head) as a Markdown table of changes; a column for each metric."""
    columns = sorted({name for _, base, _ in rows for name in base})
    lines = ["| commit | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for label, base, head in rows:
        cells = [change_pct(base.get(column, {}), head.get(column, {})) for column in columns]
        lines.append(
            f"| {label} | "
            + " | ".join(
                "-" if cell is None else f"{cell[0]:+.2f} ±{cell[1]:.2f}" for cell in cells
            )
            + " |"
        )
    return "\n".join(lines)


def measure_series(lab: Lab, series: tree.Series) -> str:
    """Each commit against its parent, and the tip against the base."""
    first = lab.levels(series.base)
    rows = []
    before = first
    for number, commit in enumerate(series.commits, start=1):
        say(f"{number}/{len(series.commits)} {commit.role}: {commit.subject}")
        now = lab.levels(commit.sha)
        same = " (same image)" if now[0] and now[0] == before[0] else ""
        rows.append((f"{number} {commit.role} {commit.patch}{same}", before[1], now[1]))
        before = now if now[1] else before
    rows.append(("tip against base", first[1], before[1]))
    return levels_line(first[1]) + "\n\n" + table(rows)


def measure_alone(lab: Lab, patches: Sequence[str]) -> str:
    """Each patch alone on Debian's source (what undoes something: on that),
    against its parent.
    """
    undone = {plant["improvement"]: plant["given"] for plant in tree.catalogue()["plants"].values()}
    undone |= {mended: broken for broken, mended in tree.catalogue()["broken"].values()}
    source = tree.Repository(lab.repo).commit_id(tree.SOURCE_REF)
    assert source is not None
    rows = []
    for patch in patches:
        say(patch)
        parent = one_commit(lab.repo, source, undone[patch]) if patch in undone else source
        base, head = lab.levels(parent), lab.levels(one_commit(lab.repo, parent, patch))
        rows.append((patch + (" (same image)" if head[0] == base[0] else ""), base[1], head[1]))
    return levels_line(lab.levels(source)[1]) + "\n\n" + table(rows)


def one_commit(repo: Path, parent: str, patch: str) -> str:
    """A commit of this patch alone on `parent`, stored under a ref of its own."""
    with tree.with_index(repo, parent) as git:
        commit = tree.applied(git, parent, patch)
        git.run(
            "update-ref",
            f"refs/demo/alone/{hashlib.sha256(f'{parent} {patch}'.encode()).hexdigest()[:16]}",
            commit,
        )
    return commit


def levels_line(levels: Levels) -> str:
    """What the percentages are of, and how far the boots spread."""
    return "\n".join(
        f"- {name}: {', '.join(f'{value:.6g}' for value in by_k.values())}{_spread(by_k)}"
        for name, by_k in sorted(levels.items())
    )


def _spread(by_k: Mapping[int, float]) -> str:
    values = list(by_k.values())
    if len(values) < 3:
        return ""
    return f" (CV {100 * statistics.stdev(values) / statistics.fmean(values):.3f} %)"


def unit_jobs(names: Sequence[str], testbox: str) -> tuple[UnitJob, ...]:
    found: list[UnitJob] = []
    for name in names:
        printed = process.run(
            [
                Path(sys.executable).parent / "swingbot",
                "jobs",
                "expand",
                CHECKOUT / "jobs" / f"{name}.yaml",
                "--testbox",
                testbox,
                "--json",
            ]
        )
        found += [codec.typed(UnitJob, job, ignore_unknown=True) for job in json.loads(printed)]
    return tuple(found)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.demo.measure",
        description="Measure what each commit of a series does.",
    )
    parser.add_argument("--repo", type=Path, required=True, help="made by tests.demo.tree")
    parser.add_argument(
        "--out", type=Path, required=True, help="kernels and results, kept for the next time"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument(
        "--alone",
        nargs="+",
        metavar="PATCH",
        help="instead of a series: these patches, each alone on the source",
    )
    parser.add_argument("--boots", type=int, default=2, help="boots of each image (default 2)")
    parser.add_argument(
        "--jobs", nargs="+", default=JOBS, help=f"job files (default {' '.join(JOBS)})"
    )
    parser.add_argument("--testbox", default="vm-icount")
    given = parser.parse_args()
    lab = Lab(
        given.repo.resolve(),
        given.out.resolve(),
        unit_jobs(given.jobs, given.testbox),
        given.testbox,
        load_all(CHECKOUT / "workers" / "testboxes")[given.testbox].kconfig or "vm-x86_64",
        given.boots,
    )
    try:
        if given.alone:
            print(measure_alone(lab, given.alone))
        else:
            print(
                measure_series(
                    lab,
                    tree.make_series(
                        lab.repo, given.seed, given.plant, count=given.count, progress=say
                    ),
                )
            )
    except (tree.TreeError, process.CommandError) as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
