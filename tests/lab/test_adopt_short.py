"""`swingbot-worker adopt` on a Debian machine that is up: its file is that of the machine."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker.testbox.adopt.adopt_commands import command
from tests.contract.labs import ROOT
from tests.lab.machine import Machine

pytestmark = pytest.mark.timeout(1800)


def test_a_debian_machine_is_adopted_with_its_console(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kconfig", "tuning"):
        (tmp_path / name).symlink_to(ROOT / "workers" / name)
    (tmp_path / "testboxes").mkdir()
    monkeypatch.setenv("SWINGBOT_PATHS_WORKERS", str(tmp_path))
    out = tmp_path / "testboxes" / "iron.yaml"
    argv = ["127.0.0.1", "--port", str(machine.port), "--key", str(machine.key), "--out", str(out)]
    argv += ["--known-hosts", str(machine.known_hosts)]
    done = CliRunner().invoke(command, [*argv, "--console", shlex.join(machine.console_command)])
    assert done.exit_code == 0, done.output
    testbox = load_file(out)
    assert (testbox.nr_cpu, testbox.nr_node) == (2, 1)
    assert 1800 < testbox.memory_mb < 2048
    assert testbox.cmdline.endswith("console=tty0 console=ttyS0")
    assert isinstance(testbox.driver, SshDriver) and testbox.driver.console is not None
    assert list(testbox.driver.console.command) == machine.console_command
    assert "virtio_net" in testbox.description
