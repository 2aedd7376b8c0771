"""A machine behind an operator's command leaves a console of 2 GB, nearly all of it a hole."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from swingbot_worker import limits
from tests.attack.target import Result, Target
from tests.contract.labs import JOBS, Lab, played_lab

NAME: Final = "sparse-console"
WANTED: Final = "the beginning is read and kept; the worker stays below 200 MB"
CONSOLE_BYTES: Final = 2 << 30
MEMORY_LIMIT: Final = 200_000_000

_FLOODS: Final = """
import os, pathlib, sys
console = pathlib.Path(os.environ["SWINGBOT_OUT"], "console.log")
console.write_text("[    1.0] the first words\\n")
os.truncate(console, {size})
sys.exit({status})
"""
# In a process of its own, which gives its peak without what its parent had before exec.
_BOOTS: Final = """
import json, sys
from pathlib import Path
from swingbot_worker import testbox
from swingbot_worker.order import BootOrder
from swingbot_worker.site import Site
order, out, cache, workers, jobs = sys.argv[1:]
site = Site(cache=Path(cache), workers=Path(workers), jobs=Path(jobs), benchmarks=None, make_jobs=1)
outcome = testbox.boot(BootOrder.from_json(json.loads(order)), Path(out), site)
status = Path("/proc/self/status").read_text()
print(json.dumps([outcome, 1024 * int(status.partition("VmHWM:")[2].split()[0])]))
"""


def run(target: Target) -> Result:
    """Boot such a machine that says it is up, and one that says it panicked."""
    held, lines = True, []
    for status in (0, 10):
        with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
            lab = played_lab(Path(directory))
            text = _FLOODS.format(size=CONSOLE_BYTES, status=status)
            Path(directory, "machine.py").write_text(text)
            outcome, peak = _booted(lab)
            left = sum(file.stat().st_size for file in lab.out.iterdir() if file.is_file())
        reason = outcome["reason"] or ""
        held &= "flooded" in reason and peak < MEMORY_LIMIT and left < 2 * limits.CONSOLE_BYTES
        lines.append(f"status {status}: {reason[:60]}, {peak >> 20} MiB, {left >> 10} KiB left")
    return Result(held, "; ".join(lines))


def _booted(lab: Lab) -> tuple[dict[str, str | None], int]:
    """Return the outcome and the peak of memory in bytes."""
    order = json.dumps(lab.order(JOBS))
    site = (lab.site.cache, lab.site.workers, lab.site.jobs)
    argv = [sys.executable, "-c", _BOOTS, order, *map(str, (lab.out, *site))]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300)
    outcome, peak = json.loads(done.stdout)
    return outcome, peak
