"""`swingbot-worker adopt --kernel`: the file of a Debian machine and a kernel are proven by one
boot.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from swingbot_worker.testbox.adopt.adopt_commands import command
from tests.contract.labs import ROOT
from tests.lab.iron import RETURN_SECONDS
from tests.lab.machine import Machine

pytestmark = pytest.mark.timeout(5400)
# Lines to replace: no playbook ran there, and its times are not those of a real machine.
REPLACED = ("tuning:", "tuning_without:", "  power: none", "boot_seconds:")


def adopted(machine: Machine, out: Path, *options: str) -> Result:
    argv = ["127.0.0.1", "--port", str(machine.port), "--key", str(machine.key), "--out", str(out)]
    argv += ["--known-hosts", str(machine.known_hosts)]
    argv += ["--console", shlex.join(machine.console_command), "--json", *options]
    return CliRunner().invoke(command, argv)


def correct(out: Path, machine: Machine, demand: dict[str, Any]) -> None:
    """Edit the file as an operator does."""
    lines = [line for line in out.read_text().splitlines() if not line.startswith(REPLACED)]
    power = {name: machine.power_command(name) for name in ("on", "off", "cycle", "status")}
    lines += [f"  power: {json.dumps(power)}", f"  return_seconds: {RETURN_SECONDS}"]
    lines += ["boot_seconds: 600", f"demand: {json.dumps(demand)}"]
    out.write_text("\n".join(lines) + "\n")


def test_every_fact_of_one_boot_is_compared_with_the_file(
    machine: Machine, base_kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kconfig", "tuning", "rootfs"):
        (tmp_path / name).symlink_to(ROOT / "workers" / name)
    (tmp_path / "testboxes").mkdir()
    monkeypatch.setenv("SWINGBOT_PATHS_WORKERS", str(tmp_path))
    out = tmp_path / "testboxes" / f"iron-{machine.port}.yaml"
    elsewhere = adopted(machine, tmp_path / "iron.yaml", "--kernel", str(base_kernel))
    assert elsewhere.exit_code == 2 and f"give --out {tmp_path}/testboxes" in elsewhere.output
    done = adopted(machine, out)
    assert done.exit_code == 0, done.output
    assert "memory 1 of 1 slots: 1 x 2 GiB" in out.read_text()

    correct(out, machine, {"clocksource": "tsc", "swap_kb": 5})
    before = machine.boot_id()
    done = adopted(machine, out, "--kernel", str(base_kernel))
    assert done.exit_code == 1, done.output
    assert "once on iron-" in done.stderr and "is running" in done.stderr
    boot = json.loads(done.stdout)["boot"]
    assert (boot["status"], boot["reason"]) == ("up", ""), boot
    found = {finding["what"]: finding for finding in boot["findings"]}
    assert found["it measures"]["found"].startswith("page-fault.per_process_ops ")
    for what in ("it has 2 CPUs", "it has 1 NUMA nodes", "its idle system is back"):
        assert found[what]["ok"], found[what]
    wrong = found["swap_kb is 5, as the file demands"]
    assert (wrong["ok"], wrong["found"]) == (False, "swap_kb was 0; 5 is required")
    assert f"correct demand in {out.name}" in wrong["do"]
    assert "swingbot=" in Path(boot["files"], "console.log").read_text()
    assert machine.boot_id() != before
