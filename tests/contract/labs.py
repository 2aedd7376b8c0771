"""Labs for the rules of drivers: a testbox, the site of its worker, and orders for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swingbot_jobs.contract.orders import check_order, check_outcome
from swingbot_worker import testbox
from swingbot_worker.order import BootOrder
from swingbot_worker.site import Site
from swingbot_worker.testbox.fence import NO_FENCE, Fence

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "prints": 'echo "result: $word"\n',
    "fails": "echo result: 1; echo it broke >&2; exit 3\n",
    "silent": "exit 0\n",
    "rubbish": "head -c 5000 /dev/urandom\n",
    # A kernel that runs out of memory with panic_on_oom set panics; a machine that is only played
    # prints the same.
    "panics": """
grep -q swingbot. /proc/cmdline || exit 1  # never on the host
echo 1 >/proc/sys/vm/panic_on_oom
echo 4000000 >/proc/sys/vm/min_free_kbytes
head -c 100000000 /dev/zero | tail -c 90000000 | wc -c
""",
}
JOBS: list[dict[str, Any]] = [
    {"name": "prints-7", "program": "prints", "params": {"word": "it's 7"}, "runs": 2}
]


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A testbox to try, and an image that it can boot."""

    site: Site
    testbox: str
    image: Path
    out: Path
    phases: list[tuple[str, str]] = field(
        default_factory=list
    )  # reported by the last boot, with reasons
    who: str = ""  # before a reason that is about one testbox of several

    def order(self, unit_jobs: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        return check_order(
            {
                "version": 1,
                "kind": "boot",
                "order": "o1",
                "attempt": "a1",
                "kernel": {"build_key": "0" * 64, "image": str(self.image)},
                "testbox": self.testbox,
                "k": 3,
                "unit_jobs": list(unit_jobs),
                **more,
            }
        )

    def boot(
        self,
        unit_jobs: Sequence[Mapping[str, Any]] = JOBS,
        *,
        fence: Fence = NO_FENCE,
        **more: Any,
    ) -> dict[str, Any]:
        """Boot by an order with these unit jobs; the outcome is known to fit its schema."""
        order = BootOrder.from_json(self.order(unit_jobs, **more))
        self.phases.clear()

        def tell(phase: str, why: str) -> None:
            self.phases.append((phase, why))

        return check_outcome(testbox.boot(order, self.out, self.site, tell, fence))


def a_job(program: str, runs: int = 1, **params: str) -> dict[str, Any]:
    return {"name": f"{program}-job", "program": program, "params": params, "runs": runs}


def programs_in(folder: Path, programs: Mapping[str, str] = PROGRAMS) -> Path:
    """A jobs directory with these programs, by name and shell text."""
    for name, text in programs.items():
        path = folder / "programs" / name / "run"
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        path.with_name("meta.yaml").write_text("kind: benchmark\nscope: micro\ndescribe: a test\n")
    return folder


PLAYED = """\
import os, subprocess, sys, pathlib
out = pathlib.Path(os.environ["SWINGBOT_OUT"])
said = pathlib.Path(os.environ["SWINGBOT_IMAGE"]).read_text().split()
console = (out / "console.log").open("w")
k, purpose = os.environ["SWINGBOT_K"], os.environ["SWINGBOT_PURPOSE"]
console.write("[    0.0] Linux version 6.1 k=" + k + " of " + purpose + "\\n")
if "panics" in pathlib.Path(os.environ["SWINGBOT_JOB"], "run.sh").read_text().split():
    console.write("[    9.0] Kernel panic - not syncing: Out of memory\\n")
    sys.exit(10)
if said[0] != "up":
    console.write("[    1.0] the last words\\n")
    print(" ".join(said[1:]))
    sys.exit(int(said[0]))
job, work = os.environ["SWINGBOT_JOB"], str(out / "work")
env = os.environ | {"SWINGBOT_PROGRAMS": job + "/programs", "SWINGBOT_WORK": work}
job = 'exec sh "$SWINGBOT_JOB/run.sh" 3>"$SWINGBOT_OUT/results.tar"'
sys.exit(subprocess.run(["sh", "-c", job], env=env).returncode)
"""


def played_lab(tmp_path: Path) -> Lab:
    (tmp_path / "workers" / "testboxes").mkdir(parents=True)
    (tmp_path / "machine.py").write_text(PLAYED)
    facts = {
        "name": "played",
        "tbox_group": "played",
        "driver": "command",
        "model": "a machine that is only played",
        "nr_cpu": 1,
        "memory_mb": 64,
        "label": "played",
        "command": {"argv": [sys.executable, str(tmp_path / "machine.py")]},
    }
    (tmp_path / "workers" / "testboxes" / "played.yaml").write_text(json.dumps(facts))
    (tmp_path / "image").write_text("up")
    site = Site(
        cache=tmp_path / "cache",
        workers=tmp_path / "workers",
        jobs=programs_in(tmp_path / "jobs"),
        benchmarks=None,
        make_jobs=1,
    )
    return Lab(site=site, testbox="played", image=tmp_path / "image", out=tmp_path / "out")
