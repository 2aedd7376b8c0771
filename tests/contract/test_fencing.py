"""A controller that was cut off neither boots nor powers a testbox that another one has leased."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swingbot_worker.executor.held_lease import Grant, HeldLease, boottime
from swingbot_worker.testbox.ssh import enter, session
from tests.contract.played import Testbox, hasten

SHELLS = [
    words for words in (["sh"], ["bash"], ["busybox", "sh"]) if shutil.which(words[0]) is not None
]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Creates a testbox with the given behaviour; minutes on a real one are seconds here."""
    hasten(monkeypatch, tmp_path / "box", quiet_seconds=3.0)
    return lambda behaves, **ssh: Testbox(
        tmp_path / "box", behaves, **{"return_seconds": 60, **ssh}
    )


def a_lease(token: int, *, seconds: float = 1e6, patience: float = 600.0) -> HeldLease:
    lease = HeldLease(patience=patience, tell=lambda line: None)
    lease.renew(Grant(fence=token, seconds=seconds), boottime())
    return lease


# --- what the idle system does


@pytest.fixture(params=SHELLS, ids=lambda words: words[0])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run a script with a token in each kind of shell; return its status and its output."""

    def run(script: str, token: int, *places: str) -> tuple[int, str]:
        text = enter.fenced(script, token, places or (f"{tmp_path}/kept",))
        done = subprocess.run(
            [*request.param, "-c", text], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_smaller_token_than_the_highest_one_seen_does_nothing(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    assert run("echo loaded", 7) == (0, "loaded\n")
    assert run("echo again", 7) == (0, "again\n")
    assert run("echo later", 1795661201) == (0, "later\n")
    assert run("echo late", 7) == (enter.FENCED, f"1795661201 {tmp_path}/kept/token\n")
    assert (tmp_path / "kept" / "token").read_text() == "1795661201\n"


def test_the_status_of_a_fenced_script_is_its_own(run: Callable[..., tuple[int, str]]) -> None:
    assert run("exit 3", 7) == (3, "")


def test_a_token_is_kept_in_memory_where_the_disk_cannot_be_written(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    places = f"{tmp_path}/file/no directory", f"{tmp_path}/work space-fence"
    assert run("echo loaded", 7, *places) == (0, "loaded\n")
    assert run("echo late", 6, *places)[0] == enter.FENCED
    status, said = run("echo lost", 7, f"{tmp_path}/file/none")
    assert status == 1 and "no directory for the token of the lease is writable" in said


def test_a_later_controller_waits_until_a_command_has_had_its_effect(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    """The machine leaves its idle system seconds after the command; until then it is locked."""
    gate, effect = tmp_path / "gate", tmp_path / "effect"
    later = f"while [ ! -e {gate} ]; do sleep 0.05; done; echo first >>{effect}"
    assert run(enter._LATER.format(f"'{later}'"), 7)[0] == 0
    second = threading.Thread(target=run, args=(f"echo second >>{effect}", 8))
    second.start()
    gate.touch()
    second.join()
    assert effect.read_text() == "first\nsecond\n"


# --- two controllers of one testbox


def test_a_controller_with_an_earlier_lease_boots_nothing(played: Any) -> None:
    testbox = played("up")
    assert testbox.boot(a_lease(9))["status"] == "up", testbox.log
    boots = testbox.world["boot_id"]
    outcome = testbox.boot(a_lease(5))
    assert outcome["status"] == "infra"
    assert "it has seen lease 9, and this controller's lease is 5" in outcome["reason"]
    assert (testbox.world["runs"], testbox.world["boot_id"]) == ("idle", boots)
    assert testbox.boot(a_lease(9))["status"] == "up", testbox.log


def test_a_controller_that_sends_a_kernel_while_another_one_takes_over_does_not_boot_it(
    played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbox = played("up")
    stage = session.Session._stage

    def slow(self: session.Session, *what: Any) -> None:
        stage(self, *what)
        (testbox.world.folder / "var" / "token").write_text("9\n")

    monkeypatch.setattr(session.Session, "_stage", slow)
    outcome = testbox.boot(a_lease(5))
    assert outcome["status"] == "infra" and "belongs to another controller" in outcome["reason"]
    assert testbox.world["runs"] == "idle"


def test_a_controller_with_an_earlier_lease_does_not_reboot_a_strange_kernel(played: Any) -> None:
    testbox = played("up")
    assert testbox.boot(a_lease(9))["status"] == "up", testbox.log
    testbox.world["runs"] = "strange"
    assert "belongs to another controller" in testbox.boot(a_lease(5))["reason"]
    assert testbox.world["runs"] == "strange"


@pytest.fixture
def switch(tmp_path: Path) -> dict[str, list[str]]:
    """A power switch that notes its commands with their tokens."""
    calls = tmp_path / "calls"
    note = f'echo "$0 $SWINGBOT_FENCE" >>{calls}'
    return {"cycle": ["sh", "-c", note, "cycle"], "status": ["echo", "on"]}


def test_a_controller_whose_lease_may_be_over_does_not_command_the_power_switch(
    played: Any, switch: Any, tmp_path: Path
) -> None:
    testbox = played("hangs", power=switch)
    lease = a_lease(5, patience=1.0)
    outcome = testbox.boot(LosesItsLease(lease, testbox))
    assert outcome["status"] == "infra" and not (tmp_path / "calls").exists(), testbox.log
    assert "The service did not renew the lease" in outcome["reason"]


def test_a_power_command_waits_until_the_lease_is_renewed(
    played: Any, switch: Any, tmp_path: Path
) -> None:
    testbox = played("hangs", power=switch, return_seconds=1)
    lease = a_lease(5)
    fence = LosesItsLease(lease, testbox)
    lease.tell = lambda line: lease.renew(Grant(fence=5, seconds=1e6), boottime())
    testbox.boot(fence)
    assert (tmp_path / "calls").read_text().splitlines()[0] == "cycle 5"


class LosesItsLease:
    """A lease that the service no longer renews once the testbox has left its idle system."""

    def __init__(self, lease: HeldLease, testbox: Testbox) -> None:
        self.lease, self.testbox = lease, testbox

    @property
    def token(self) -> int | None:
        return self.lease.token

    def hold(self, seconds: float) -> None:
        if self.testbox.world["runs"] != "idle":
            self.lease.renew(Grant(fence=5, seconds=0.0), boottime())
        self.lease.hold(seconds)
