"""Real boots for simulated worlds: boots one kernel on `vm-tcg` and keeps a value per run.

`python -m tests.calibration.record IMAGE [BOOTS]`.

Writes `tests/calibration/vm-tcg.json`. The values are measured; worlds draw the residuals from
them, their levels are made up.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from tests.boot.lab import virtual_lab
from tests.contract.labs import ROOT, a_job
from tests.worlds import RECORDED

JOBS = [
    a_job("page-fault", runs=3, mode="process", nr_task="1", cycles="1", size="134217728"),
    a_job(
        "hackbench",
        runs=3,
        mode="process",
        ipc="socket",
        nr_threads="2",
        iterations="1",
        loops="60",
        fds="20",
        datasize="100",
    ),
]
METRICS = ("page-fault.per_process_ops", "hackbench.throughput")


def record(image: Path, boots: int) -> dict[str, list[list[float]]]:
    """Metric -> boot -> runs. Boots that are not up are left out: what is wanted is noise."""
    kept: dict[str, list[list[float]]] = {metric: [] for metric in METRICS}
    for k in range(boots):
        with tempfile.TemporaryDirectory() as scratch:
            lab = virtual_lab(Path(scratch), image, testbox="vm-tcg", boot_seconds=6)
            outcome = lab.boot(JOBS, k=k)
            print(f"boot {k + 1} of {boots}: {outcome['status']}", file=sys.stderr, flush=True)
            if outcome["status"] != "up":
                continue
            runs = parse_results(
                lab.out / "results.tar",
                [codec.typed(UnitJob, job) for job in JOBS],
                load_programs(ROOT / "jobs" / "programs"),
            )
        for metric in METRICS:
            if values := [v for run in runs for v in run.samples.get(metric, [])]:
                kept[metric].append(values)
    return kept


def main() -> None:
    image, boots = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 15
    RECORDED.write_text(as_json(record(image, boots)))


def as_json(kept: dict[str, list[list[float]]]) -> str:
    """One boot a line."""
    metrics = [
        f'  "{metric}": [\n'
        + ",\n".join(f"   {json.dumps([round(v, 3) for v in boot])}" for boot in found)
        + "\n  ]"
        for metric, found in kept.items()
    ]
    return (
        '{\n "provenance": "measured",\n "testbox": "vm-tcg",\n "boots": {\n'
        + ",\n".join(metrics)
        + "\n }\n}\n"
    )


if __name__ == "__main__":
    main()
