"""The cost of the monitors of every run: the same boots with and without them,
in pairs of equal perturbations.

    python -m benchmarks.monitors --image PATH [--testbox vm-icount] [--boots 3]

Two figures: how far a benchmark's number moves, and how many guest seconds each run takes longer
outside its timed window.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results, read_results
from swingbot_worker import runner, testbox
from swingbot_worker.order import BootOrder
from swingbot_worker.site import Site, from_environment

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = load_programs(ROOT / "jobs" / "programs")
JOBS = (
    UnitJob(
        name="page-fault",
        program="page-fault",
        params={"mode": "process", "nr_task": "1", "cycles": "4", "size": str(128 << 20)},
        runs=2,
    ),
    UnitJob(
        name="hackbench",
        program="hackbench",
        params={
            "mode": "process",
            "nr_threads": "1",
            "ipc": "pipe",
            "iterations": "2",
            "loops": "200",
            "fds": "20",
            "datasize": "100",
        },
        runs=3,
    ),
    UnitJob(
        name="netperf-udp",
        program="netperf",
        params={"test": "UDP_STREAM", "ip": "ipv4", "nr_threads": "1", "runtime": "2"},
        runs=2,
    ),
)
Boot = tuple[dict[str, float], float]  # mean by headline metric, guest seconds from ready to end


def main(argv: Sequence[str] | None = None) -> None:
    """Print one line a metric."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--image", type=Path, required=True, help="kernel to boot")
    asked.add_argument("--testbox", default="vm-icount")
    asked.add_argument("--boots", type=int, default=3, help="pairs of boots")
    given = asked.parse_args(argv)
    pairs = [[_boot(given, k, without) for without in (True, False)] for k in range(given.boots)]
    print(f"{given.testbox}, {given.boots} pairs of boots of equal perturbations")
    print(f"{'metric':38} {'without':>12} {'with':>12} {'moved':>9}   each pair")
    for metric in pairs[0][0][0]:
        values = [[boot[0][metric] for boot in pair] for pair in pairs]
        moved = [100 * (with_ / without - 1) for without, with_ in values]
        means = [statistics.fmean(side) for side in zip(*values, strict=True)]
        print(
            f"{metric:38} {means[0]:12.1f} {means[1]:12.1f} {statistics.fmean(moved):+8.3f} % "
            f" {' '.join(f'{one:+.3f}' for one in moved)}"
        )
    runs = sum(job.runs for job in JOBS)
    longer = [(pair[1][1] - pair[0][1]) / runs for pair in pairs]
    print(
        f"each run takes {1000 * statistics.fmean(longer):.0f} ms of the guest longer,"
        " before and after its timed window together"
    )


def _boot(given: argparse.Namespace, k: int, without: bool) -> Boot:
    with tempfile.TemporaryDirectory(prefix="monitors-") as work:
        here = from_environment()
        site = Site(
            cache=here.cache,
            workers=ROOT / "workers",
            jobs=ROOT / "jobs",
            benchmarks=None,
            make_jobs=1,
        )
        order: dict[str, Any] = {
            "version": 1,
            "kind": "boot",
            "order": "o1",
            "attempt": "a1",
            "testbox": given.testbox,
            "k": k,
        }
        order |= {
            "kernel": {"build_key": "0" * 64, "image": str(given.image)},
            "unit_jobs": codec.plain(JOBS),
        }
        plain = runner.script
        runner.script = _silent(plain) if without else plain
        try:
            outcome = testbox.boot(BootOrder.from_json(order), Path(work), site)
        finally:
            runner.script = plain
        if outcome["status"] != "up":
            raise SystemExit(f"the boot was {outcome['status']}: {outcome['reason']}")
        return _read(Path(work, "results.tar"))


def _silent(plain: Callable[..., str]) -> Callable[..., str]:
    """The same script without anything to watch."""

    def script(unit_jobs: Sequence[UnitJob], *, alone: bool) -> str:
        made = plain(unit_jobs, alone=alone)
        assert made.count("\nprobe_monitors\n") == 1
        return made.replace("\nprobe_monitors\n", "\nsb_light= sb_nodes= sb_time=\n")

    return script


def _read(results: Path) -> Boot:
    found: dict[str, list[float]] = {}
    for run in parse_results(results, JOBS, PROGRAMS):
        if run.status != "ok":
            raise SystemExit(f"{run.unit_job} {run.number}: {run.reason}")
        for metric, values in run.samples.items():
            known = PROGRAMS[metric.partition(".")[0]].metric(metric)
            if known and known.headline:
                found.setdefault(metric, []).extend(values)
    facts = read_results(results).facts
    return {metric: statistics.fmean(values) for metric, values in found.items()}, float(
        facts["ended"]
    ) - float(facts["ready_seconds"])


if __name__ == "__main__":
    main()
