"""Levels of trust: who may boot what, and under which key."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs.contract import trust
from swingbot_jobs.contract.orders import ContractError, check_order
from swingbot_jobs.testbox.file import load, load_all
from swingbot_jobs.testbox.table import TestboxError

TESTBOXES = Path(__file__).resolve().parents[2] / "workers" / "testboxes"
KEY = "a" * 64


def test_one_untrusted_part_makes_the_whole_untrusted() -> None:
    assert trust.least(["trusted", "untrusted"]) == "untrusted"
    assert trust.least(["trusted", "trusted"]) == trust.least([]) == "trusted"


def test_only_untrusted_kernels_need_a_testbox_that_accepts_them() -> None:
    assert (
        trust.accepted("trusted", "trusted")
        and trust.accepted("trusted", "untrusted")
        and trust.accepted("untrusted", "untrusted")
    )
    assert not trust.accepted("untrusted", "trusted")


def test_the_same_kernel_has_another_key_at_each_level() -> None:
    assert trust.key_at(KEY, "trusted") == KEY
    assert trust.key_at(KEY, "untrusted") != KEY and len(trust.key_at(KEY, "untrusted")) == 64


def test_an_order_of_an_unknown_level_is_refused() -> None:
    kernel = {
        "build_key": KEY,
        "repo": "/linux",
        "commit": "1" * 40,
        "kconfig": "tiny",
        "compiler": "gcc",
        "layout": 0,
    }
    order = {"version": 1, "kind": "build", "order": "o1", "attempt": "a1", "kernel": kernel}
    assert check_order({**order, "kernel": {**kernel, "trust": "untrusted"}})
    with pytest.raises(ContractError, match="kernel/trust"):
        check_order({**order, "kernel": {**kernel, "trust": "some"}})


def test_virtual_machines_take_untrusted_kernels_and_a_testbox_only_if_its_file_allows() -> None:
    assert {
        name for name, testbox in load_all(TESTBOXES).items() if testbox.accepts == "untrusted"
    } >= {
        "vm-icount",
        "vm-tcg",
    }
    text = (TESTBOXES / "vm-tcg.yaml").read_text()
    without = "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("accepts:")
    )
    assert load(without, "vm-tcg.yaml").accepts == "trusted"
    with pytest.raises(TestboxError, match="'anything' is not one of trusted, untrusted"):
        load(f"{without}accepts: anything\n", "vm-tcg.yaml")
