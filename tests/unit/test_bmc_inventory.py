"""What a BMC reports of the hardware: lines become facts, and bad answers one sentence."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from swingbot.core.plan.testbox_rules import hardware, hardware_changes
from swingbot.core.stats.fact_differences import differences
from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_worker import InfraError
from swingbot_worker.testbox.ssh import check, inventory
from swingbot_worker.testbox.ssh.idle_system import answer

RACK = load_file(Path(__file__).parents[2] / "workers/testboxes/examples/serial-ipmi.yaml")
# ipmitool 1.8.19: mc info, then fru print.
SAID = """\
Device ID                 : 32
Firmware Revision         : 1.74
Product Name              : Unknown (0xF02)
Device Available          : yes
Additional Device Support :
    Sensor Device
Aux Firmware Rev Info     :
    0x00
FRU Device Description : Builtin FRU Device (ID 0)
 Board Mfg Date        : Mon Jun  3 10:01:00 2019
 Board Serial          : ZM19AS001
 Product Name          : SYS-6029

FRU Device Description : PSU2 (ID 12)
 Device not present (Requested sensor, data, or record not found)
FRU Device Description : PSU1 (ID 11)
 Product Name          : PWS-1K:02\x1b[31m
"""
SERIAL = "#" + hashlib.sha256(b"ZM19AS001").hexdigest()[:12]


def test_lines_of_ipmitool_become_facts() -> None:
    assert inventory.facts(SAID) == {
        "bmc.device_id": "32",
        "bmc.firmware_revision": "1.74",
        "bmc.product_name": "Unknown (0xF02)",
        "bmc.fru0_board_serial": SERIAL,
        "bmc.fru0_product_name": "SYS-6029",
        "bmc.fru11_product_name": "PWS-1K:02 [31m",
    }


def test_what_a_bmc_prints_is_bounded() -> None:
    many = "".join(f"slot {n}: {'x' * 5000}\n" for n in range(1000))
    found = inventory.facts(many)
    assert 0 < len(found) <= inventory.MOST
    assert {len(said) for said in found.values()} <= {inventory.CHARACTERS}
    assert inventory.facts('\0\xff: \n{"a": [\n<html>\n: b\n' + "a" * 99_999) == {}


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo ok: 1; echo BMC busy >&2; exit 3", "failed with status 3: BMC busy"),
        ("exit 1", "failed with status 1: it printed nothing"),
        ("echo '{\"Members\": []'", 'printed no line `name: value`: {"Members": []'),
        ("exec yes name: value", "printed more than 64 KiB: name"),
        ("sleep 1000", "has not ended yet: it printed nothing"),
    ],
)
def test_a_bad_answer_is_one_sentence(script: str, sentence: str) -> None:
    wait = 0.0 if script.startswith("sleep") else 60.0
    with inventory.asked(["sh", "-c", script]) as asked, pytest.raises(InfraError) as caught:
        asked.read(wait)
    assert str(caught.value) == f"The command sh of ssh.inventory {sentence}"


def test_an_answer_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "SECONDS", 0.2)
    with inventory.asked(["sleep", "1000"]) as asked, pytest.raises(InfraError) as caught:
        asked.read(60.0)
    assert "took more than 0.2 s" in str(caught.value)


def test_the_check_says_whether_the_bmc_answers() -> None:
    def found(*command: str) -> list[tuple[bool, str, str]]:
        assert isinstance(RACK.driver, SshDriver)
        driver = replace(RACK.driver, inventory=command)
        return [(one.ok, one.found, one.do) for one in check._inventory(driver)]

    assert found() == []
    assert found("echo", "board: X11") == [(True, "1 facts", "")]
    [(ok, _, do)] = found("no-such-program")
    assert not ok and "failed to execute no-such-program" in do


def test_another_board_is_other_hardware_and_a_silent_bmc_is_not() -> None:
    before = hardware(RACK, {"microcode": "0x1", **inventory.facts(SAID)})
    now = hardware(RACK, inventory.facts(SAID.replace("1.74", "1.80")))
    assert hardware_changes(before, now) == "bmc.firmware_revision 1.74 -> 1.80"
    assert hardware_changes(before, hardware(RACK, {"microcode": "0x1"})) is None


def test_a_comparison_that_spans_another_board_says_so() -> None:
    base, head = inventory.facts(SAID), inventory.facts(SAID.replace("ZM19AS001", "ZM19AS002"))
    [differs] = differences({0: base}, {0: head}, paired=False)
    assert (differs.fact, differs.kind) == ("bmc.fru0_board_serial", "blocks")
    assert differences({0: base}, {0: {}}, paired=False) == []


def test_lanes_of_cards_are_hardware() -> None:
    wide = answer("pcie_lanes=0000:3b:00.0 x8, 0000:5e:00.0 x4, \n").hardware
    narrow = answer("pcie_lanes=0000:3b:00.0 x4, 0000:5e:00.0 x4, \n").hardware
    assert wide == {"pcie_lanes": "0000:3b:00.0 x8, 0000:5e:00.0 x4"}
    changed = hardware_changes(hardware(RACK, wide), hardware(RACK, narrow))
    assert changed is not None and changed.startswith("pcie_lanes 0000:3b:00.0 x8, ")
    assert answer("").hardware == {}
