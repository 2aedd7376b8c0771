"""The short form of the attacks: those on a host's walls, readers and terminal are run here.

Those that need a service run beside one that another test has started.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from swingbot.app import embedded
from swingbot_worker import walls
from tests.attack import state_files
from tests.attack.__main__ import attacks
from tests.attack.target import Target

HERE = {
    "board_visitors",
    "boot_results",
    "build_config",
    "build_disk",
    "build_elf",
    "build_escape",
    "build_forks",
    "build_memory",
    "build_shared_cache",
    "build_trusted_disk",
    "chosen_maintainers",
    "guest_results",
    "repository_config",
    "sparse_console",
    "terminal_escapes",
}
ELSEWHERE = {
    "bad_heads": "tests/db/test_attacks_on_web.py",
    "copied_files": "tests/db/test_attacks_on_web.py",
    "foreign_hosts": "tests/db/test_attacks_on_web.py",
    "kernel_records": "tests/db/test_attacks_on_web.py",
    "half_open_heads": "tests/db/test_attacks_on_web.py",
    "page_flood": "tests/db/test_attacks_on_web.py",
    "large_files": "tests/db/test_attacks_on_web.py",
    "slow_samples": "tests/db/test_attacks_on_web.py",
    "wrong_tokens": "tests/db/test_attacks_on_web.py",
    "buildbot_origin": "tests/buildbot/test_fleet.py",
    "state_files": "tests/builds/test_attacks.py",
    "local_mail_flood": "tests/db/test_outbox.py",
}
# It takes minutes with the limits of a running service. This test stops each part with short ones.
LONG = {"hung_parts": "tests/buildbot/test_hung.py"}
ROOT = Path(__file__).resolve().parents[2]
NO_WALLS = walls.missing(walls.probe().walls)


@pytest.mark.parametrize("name", sorted(HERE))
def test_an_attack_that_needs_no_service_is_held_off(name: str) -> None:
    if NO_WALLS and name.startswith("build_"):
        pytest.skip(f"no walls on this host: {NO_WALLS[:300]}")
    result = dict(attacks())[name].run(Target())
    print(result.line)
    assert result.held, result.line


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_no_other_user_reads_the_state_directory_once_the_service_has_it() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        state = Path(directory) / "state"
        state.mkdir(mode=0o755)
        (state / "mirror").write_text("commits")
        assert not state_files.run(Target(state=state)).held
        with embedded._lock(state):
            result = state_files.run(Target(state=state))
        assert result.held, result.line


def test_every_attack_is_part_of_the_tests() -> None:
    assert set(dict(attacks())) == HERE | set(ELSEWHERE) | set(LONG)
    for name, file in ELSEWHERE.items():
        assert f"{name}.run(" in (ROOT / file).read_text(), f"{file} does not run {name}"
    for file in LONG.values():
        text = (ROOT / file).read_text()
        assert "signal.SIGSTOP" in text
        assert all(part in text for part in ("web", "loop", "smtpd", "buildbot-master", "worker-"))


def test_a_skipped_attack_does_not_count_as_held() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.attack", "state_files", "repository_config"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("skipped  state-files: give --state")
    assert done.stdout.splitlines()[-1] == "1 held, 0 FAILED, 1 skipped"
