"""`make demo EXPERIMENT=1`: the table of a kernel mail, made again by one command.

The experiment is a file of jobs/experiments; the service, the tree and the command line are those
that anyone uses.

Environment: EXPERIMENT (1: hackbench, the one that costs least; or the name of another file, such
as pcp-high), DEMO_EXIT=1 (stop at the end), DEMO_PORT (8010), DEMO_STATE (a directory that is
emptied first), DEMO_RESULT (file for one line of JSON).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from swingbot_worker.site import from_environment
from tests.demo.demo import Clock, DemoError, Service, follow, to_the_end
from tests.demo.tree import SOURCE_REF, make_base
from tests.kernels import demo_repository

EXPERIMENTS: Final = Path(__file__).resolve().parents[2] / "jobs" / "experiments"
CHEAPEST: Final = "hackbench"
TREE_NAME: Final = "linux"
OVER: Final = ("done", "failed", "cancelled")


def experiment_file(wanted: str) -> Path:
    """The file that EXPERIMENT names. Raises DemoError that lists the files."""
    names = sorted(path.stem for path in EXPERIMENTS.glob("*.yaml"))
    name = CHEAPEST if wanted == "1" else wanted
    if name not in names:
        raise DemoError(f"there is no experiment {wanted!r}: EXPERIMENT is 1, {', '.join(names)}")
    return EXPERIMENTS / f"{name}.yaml"


def main() -> int:
    """0 if every row that has a reference was compared with it."""
    return to_the_end(_play)


def _play(clock: Clock, start: Callable[..., Service]) -> int:
    file = experiment_file(os.environ.get("EXPERIMENT") or "1")
    site = from_environment()
    repo = demo_repository(site)
    make_base(repo, site.cache, clock.say)
    clock.stage("repository")
    return run(clock, start("swingbot-experiment"), repo, file)


def run(clock: Clock, service: Service, repo: Path, file: Path) -> int:
    """Queue the experiment, wait for its end, print its table."""
    branch = SOURCE_REF.rpartition("/")[2]
    job = yaml.safe_load(file.read_text())["job"]
    service.ask(
        "tree", "add", TREE_NAME, str(repo), "--branch", branch, "--base", branch, "--job", job
    )
    print(service.ask("experiment", "--file", str(file), "--dry-run"), flush=True)
    asked = json.loads(service.ask("experiment", "--file", str(file), "--yes", "--json"))
    number = str(asked["id"])
    follow(clock, service, number, lambda: _shown(service, number)["status"] in OVER)
    clock.stage("builds, boots and table")
    return judge(clock, service, number)


def _shown(service: Service, number: str) -> Any:
    return json.loads(service.ask("show", number, "--json"))


def judge(clock: Clock, service: Service, number: str) -> int:
    """Print the table and what it took; 3 if a row could not be compared."""
    found = _shown(service, number)
    print(f"\n{'-' * 78}\n{service.ask('show', number)}{'-' * 78}\n")
    for name, seconds in [*clock.stages, ("in all", sum(s for _, s in clock.stages))]:
        print(f"{name:32}{seconds:8.0f} s")
    totals = service.facts("status")["totals"]
    print(f"{'kernels built / from the cache':32}{totals['built']:8} / {totals['cached']}")
    print(f"{'boots':32}{totals['boots']:8}\n{'runs':32}{totals['runs']:8}")
    right = is_complete(found)
    print(f"\n{number}: {'every row is compared' if right else 'INCOMPLETE'}", flush=True)
    if path := os.environ.get("DEMO_RESULT"):  # whole or not at all: a test waits for it
        line = {"experiment": number, "right": right, "stages": dict(clock.stages), **totals}
        half = Path(f"{path}.half")
        half.write_text(json.dumps(line) + "\n")
        half.rename(path)
    if os.environ.get("DEMO_EXIT") != "1":
        print("\nthe service goes on; Ctrl-C stops it", flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0 if right else 3


def is_complete(found: Any) -> bool:
    """Whether an experiment as JSON is done, all its kernels booted and every headline row
    judged."""
    headlines = [row for row in found["rows"] if row["headline"]]
    return bool(
        found["status"] == "done"
        and headlines
        and all(arm["up"] for arm in found["arms"])
        and all(row["verdict"] != "invalid" for row in headlines)
    )


if __name__ == "__main__":
    sys.exit(main())
