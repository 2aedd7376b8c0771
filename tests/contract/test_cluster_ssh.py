"""A cluster of two bare-metal testboxes that are only played: what is done with both together.

How each is driven is in test_testbox_ssh.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swingbot_worker import lease
from tests.contract.played import OUT, Two, hasten


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Creates two testboxes with the given behaviour; minutes on a real one are seconds here."""
    hasten(monkeypatch, tmp_path / "two", quiet_seconds=6.0)
    return lambda serving, asking, /, **more: Two(tmp_path / "two", serving, asking, **more)


def test_both_are_entered_and_both_go_home(two: Any) -> None:
    pair = two("up", "up")
    outcome = pair.boot()
    assert (outcome["status"], outcome["reason"]) == ("up", None), pair.log()
    assert pair.phase_names == OUT
    assert pair.run == ["idle", "idle"]
    assert (
        outcome["facts"]["entered_by"],
        outcome["facts"]["server.entered_by"],
        outcome["facts"]["server.ready_seconds"],
    ) == ("kexec", "kexec", 1.5)
    assert {
        "driver.log",
        "server.driver.log",
        "console.log",
        "server.console.log",
        "results.tar",
        "server.results.tar",
    } <= set(outcome["files"])
    assert outcome["runs"][0]["status"] == "missing"  # they are only played
    with lease.for_testboxes(pair.site.cache, ["serving", "asking"], patience=-1):
        pass


@pytest.mark.parametrize(
    ("serving", "asking", "says"),
    [
        ("panics", "up", "server serving: "),
        ("up", "panics", "client asking: "),
        ("panics", "hangs", "server"),
    ],
)
def test_a_panic_is_reported_with_its_testbox_and_both_go_home(
    two: Any, serving: str, asking: str, says: str
) -> None:
    pair = two(serving, asking)
    outcome = pair.boot()
    assert outcome["status"] == "panicked"
    assert outcome["reason"].startswith(says) and "Kernel panic" in outcome["reason"]
    assert pair.phase_names[-1] == "idle"
    assert pair.run == ["idle", "idle"]


def test_a_testbox_that_cannot_begin_keeps_the_other_in_its_idle_system(two: Any) -> None:
    pair = two("up", "up", serving={"kconfig_needed": ["SCSI"]})
    before = pair.worlds["asking"]["boot_id"]
    outcome = pair.boot()
    assert (outcome["status"], outcome["fault"]) == ("infra", "order")
    assert outcome["reason"].startswith(
        "Cluster two, server serving: The kernel lacks options that testbox serving needs: "
        "CONFIG_SCSI=y"
    )
    assert pair.worlds["asking"]["boot_id"] == before
    assert pair.run == ["idle", "idle"]


def test_what_the_wire_needs_is_looked_for_before_anything_begins(two: Any) -> None:
    pair = two("up", "up", cluster={"kconfig_needed": ["IXGBE"]})
    outcome = pair.boot()
    assert (outcome["status"], outcome["fault"], pair.phase_names) == ("infra", "order", [])
    assert "lacks options that the wire of cluster two needs: CONFIG_IXGBE=y" in outcome["reason"]


def test_a_testbox_that_does_not_come_back_is_lost_by_name(two: Any) -> None:
    pair = two("up", "hangs", asking={"power": "none", "return_seconds": 1})
    outcome = pair.boot()
    assert outcome["status"] == "infra"
    assert outcome["reason"].startswith("Cluster two, client asking: Testbox asking is lost")
    phase, why = pair.phases[-1]
    assert phase == "lost"
    assert why.startswith("client asking: ")
    assert pair.run[0] == "idle"


def test_a_testbox_that_stays_in_its_idle_system_is_named_and_the_other_is_home(two: Any) -> None:
    pair = two("stays", "up")
    outcome = pair.boot()
    assert outcome["status"] == "infra"
    assert outcome["reason"].startswith("Cluster two, server serving: ")
    assert pair.run == ["idle", "idle"]
