"""One order on a bare-metal testbox, in all the ways it can go.

The testbox is only played, so that each takes seconds. tests/lab has a real one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from swingbot_worker.testbox import select_driver
from tests.contract.played import OUT, PROGRAM, Testbox, hasten


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Creates a testbox with the given behaviour; minutes on a real one are seconds here."""
    hasten(monkeypatch, tmp_path / "box", quiet_seconds=3.0)
    return lambda behaves, **ssh: Testbox(tmp_path / "box", behaves, **ssh)


def test_an_order_comes_up_and_the_testbox_goes_home(played: Any) -> None:
    testbox = played("up")
    outcome = testbox.boot()
    assert (outcome["status"], outcome["reason"]) == ("up", None), testbox.log
    assert testbox.phases == OUT
    assert (outcome["facts"]["entered_by"], outcome["facts"]["ready_seconds"]) == ("kexec", 1.5)
    assert testbox.world["runs"] == "idle"
    text = (testbox.folder / "out" / "console.log").read_text()
    assert "6.1.192" in text and "6.1.0-56" not in text and "SB:" not in text


def test_a_panic_is_the_kernel_s_and_the_testbox_goes_home(played: Any) -> None:
    testbox = played("panics")
    outcome = testbox.boot()
    assert (outcome["status"], outcome["reason"]) == (
        "panicked",
        "Kernel panic - not syncing: sysrq triggered crash",
    )
    assert testbox.phases == OUT


@pytest.mark.parametrize("behaves", ["resets", "mute"])
def test_a_reset_without_a_word_is_the_kernel_s(played: Any, behaves: str) -> None:
    testbox = played(behaves)
    outcome = testbox.boot()
    assert outcome["status"] == "panicked" and "reset" in outcome["reason"]
    assert testbox.phases[-1] == "idle"


def test_a_hang_is_ended_by_the_power_switch(played: Any) -> None:
    testbox = played("hangs")
    outcome = testbox.boot()
    assert outcome["status"] == "hung" and "while the job ran" in outcome["reason"]
    assert testbox.phases == OUT
    assert "running + quiet -> returning: cycle" in testbox.log


def test_a_pulled_plug_is_no_fault_of_the_kernel(played: Any) -> None:
    testbox = played("unplugged")
    outcome = testbox.boot()
    assert outcome["status"] == "infra" and "lost power" in outcome["reason"]
    assert testbox.phases == OUT


def test_a_hang_under_a_switch_that_lies_loses_the_testbox(played: Any, tmp_path: Path) -> None:
    lies = [*PROGRAM, "power", f"{tmp_path}/box/world", "lie"]
    testbox = played("hangs", power={"cycle": lies, "status": lies}, return_seconds=1)
    outcome = testbox.boot()
    assert outcome["status"] == "infra"
    assert "is lost" in outcome["reason"] and "cycled 2 times without effect" in outcome["reason"]
    assert testbox.phases == ["booting", "running", "returning", "lost"]


def test_a_hang_without_a_switch_loses_the_testbox_and_says_so(played: Any) -> None:
    testbox = played("hangs", power="none", return_seconds=1)
    outcome = testbox.boot()
    assert outcome["status"] == "infra"
    assert (
        "does not return to its idle system and has no power switch; reset it by hand."
        in outcome["reason"]
    )
    assert testbox.phases[-1] == "lost"


def test_a_panic_stays_a_result_though_the_testbox_never_comes_back(played: Any) -> None:
    testbox = played("panics and is dead", return_seconds=1)
    outcome = testbox.boot()
    assert outcome["status"] == "panicked", outcome
    assert testbox.phases[-1] == "lost"


def test_a_testbox_in_a_strange_kernel_goes_home_before_its_order(played: Any) -> None:
    testbox = played("up")
    testbox.world["runs"] = "strange"
    outcome = testbox.boot()
    assert outcome["status"] == "up", testbox.log
    assert testbox.phases == ["returning", *OUT]
    assert "it runs Linux 6.12.0" in testbox.log


def test_a_testbox_without_power_is_switched_on_for_its_order(played: Any) -> None:
    testbox = played("up")
    testbox.world["power"] = "off"
    assert testbox.boot()["status"] == "up", testbox.log
    assert testbox.phases == ["returning", *OUT]


def test_a_testbox_that_does_not_leave_its_idle_system_is_our_fault(played: Any) -> None:
    testbox = played("stays")
    outcome = testbox.boot()
    assert outcome["status"] == "infra" and "still in the idle system" in outcome["reason"]
    assert testbox.world["runs"] == "idle"


def test_the_next_order_finds_the_testbox_that_the_last_one_lost(played: Any) -> None:
    testbox = played("hangs", return_seconds=4)
    testbox.world["behaves"] = "dead"
    assert testbox.boot()["status"] == "infra"
    testbox.world["behaves"] = "up"
    assert testbox.boot()["status"] == "up", testbox.log


def test_the_check_measures_the_console_and_says_what_results_cost_on_it(played: Any) -> None:
    lab = played("up").lab
    driver = select_driver.driver_of(select_driver.testbox_of(lab.testbox, lab.site))
    found = {finding.what: finding for finding in driver.check()}
    speed = found["the console carries what is printed on it"]
    assert speed.ok and int(speed.found.partition(" ")[0]) > 100
    assert re.match(
        r"\d+\.\d KB a run; of 100 runs \d+\.\d minutes",
        found["cost of results on the console"].found,
    )
