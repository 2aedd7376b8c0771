"""BMCs that are busy: their words, and power commands that are given again."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs.testbox.ssh import Power
from swingbot_worker import InfraError
from swingbot_worker.testbox.ssh import bmc, power_switch


@pytest.mark.parametrize(
    "line",
    [
        "Info: SOL payload already active on another session",
        "Set Chassis Power Control to Cycle failed: Node busy",
        "ipmiconsole: SOL in use",
        "Error in open session response message : insufficient resources for session",
    ],
)
def test_a_busy_session_is_recognised_in_the_words_of_its_program(line: str) -> None:
    assert bmc.busy(f"Loading...\r\n{line}\r\n") == line


@pytest.mark.parametrize(
    "line",
    [
        "[    3.141592] bind: port already in use",
        "<3>[   12.0] nfs: another session",
        "[SOL Session operational.  Use ~? for help]",
        "Chassis Power is on",
    ],
)
def test_what_a_kernel_prints_is_no_busy_session(line: str) -> None:
    assert bmc.busy(f"{line}\r\n") == ""


def test_a_program_that_says_it_on_stderr_found_a_busy_session_too(tmp_path: Path) -> None:
    raw = tmp_path / "console"
    assert bmc.held(raw) == ""
    raw.write_text("[    3.141592] bind: port already in use\n")
    assert bmc.held(raw) == ""
    raw.with_suffix(".err").write_text("ipmiconsole: SOL in use\n")
    assert bmc.held(raw) == "ipmiconsole: SOL in use"


def switch(folder: Path, times: int) -> Power:
    """Return a switch whose BMC is busy for that many commands."""
    count = folder / "count"
    count.write_text("0")
    script = (
        f"n=$(cat {count}); echo $((n + 1)) >{count};"
        f" [ $n -ge {times} ] || {{ echo Get Chassis Power Status failed: Node busy; exit 1; }};"
        " echo Chassis Power is on"
    )
    return Power(status=("sh", "-c", script), cycle=("sh", "-c", script))


def test_a_busy_switch_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmc, "RETRY_SECONDS", 0.01)
    assert power_switch.status(switch(tmp_path, 3)) == "on"
    power_switch.cycle(switch(tmp_path, 3))
    assert (tmp_path / "count").read_text() == "4\n"


def test_a_switch_that_stays_busy_is_a_sentence_and_not_the_machine_s_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bmc, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(bmc, "BUSY_SECONDS", 0.05)
    with pytest.raises(InfraError) as caught:
        power_switch.cycle(switch(tmp_path, 1000))
    assert caught.value.of_outcome == {"fault": "limit"}
    assert "found its switch busy" in str(caught.value) and "Node busy" in str(caught.value)
