"""Processes that share memory use it once: with a cgroup, and where the processes are measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from swingbot_worker.walls.argv import View
from swingbot_worker.walls.guard import OverLimit
from swingbot_worker.walls.limits import MIB
from swingbot_worker.walls.probe import missing, probe
from swingbot_worker.walls.sandbox import Sandbox, SandboxedCommand
from swingbot_worker.walls.trials import LIMITS

PROBED = probe()
NO_WALLS = missing([wall for wall in PROBED.walls if wall.name != "disk"])
pytestmark = pytest.mark.skipif(bool(NO_WALLS), reason=f"no walls on this host: {NO_WALLS[:300]}")

MEMORY = 400 * MIB
# Six children beside 120 MB that they share with their parent, or with 120 MB of their own each.
SHARES = "import os,time\nx=b'x'*120_000_000\n"
OWN = "import os,time\n"
CHILDREN = """
for _ in range(6):
    if os.fork() == 0:
        {}
        time.sleep({})
        os._exit(0)
for _ in range(6):
    os.wait()
"""


def run(tmp_path: Path, *, grouped: bool, python: str) -> int | None:
    """Run a program behind the walls with MEMORY; return its status. Raises OverLimit."""
    assert PROBED.sandbox is not None
    sandbox: Sandbox = replace(PROBED.sandbox, limits=replace(LIMITS, memory=MEMORY))
    if not grouped:
        sandbox = replace(sandbox, control=None)
    tmp_path.chmod(0o755)
    return sandbox.run(
        SandboxedCommand(
            argv=["/usr/bin/python3", "-c", python],
            view=View(trust="untrusted", read_only=(tmp_path,), directory=tmp_path),
            env={"PATH": "/usr/bin:/bin"},
            log=tmp_path / "log",
        ),
        timeout=300,
    ).rc


@pytest.mark.parametrize("grouped", [True, False], ids=["cgroup", "measured"])
def test_memory_that_processes_share_counts_once(tmp_path: Path, grouped: bool) -> None:
    assert run(tmp_path, grouped=grouped, python=SHARES + CHILDREN.format("pass", 3)) == 0


@pytest.mark.parametrize("grouped", [True, False], ids=["cgroup", "measured"])
def test_memory_of_each_process_counts(tmp_path: Path, grouped: bool) -> None:
    with pytest.raises(OverLimit, match="MB of memory; the limit is 400 MB"):
        run(tmp_path, grouped=grouped, python=OWN + CHILDREN.format("x=b'x'*120_000_000", 200))
