"""What a kernel sees of its testbox: fewer CPUs, nodes or memory than the file states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from swingbot.core.plan.seen_hardware import invalid_reason, whole
from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.visible_hardware import short_of

RACK = replace(
    load_file(Path(__file__).parents[2] / "workers/testboxes/examples/serial-ipmi.yaml"),
    nr_cpu=128,
    nr_node=2,
    memory_mb=256_000,
)
ALL = {"nr_cpu": 128, "nr_node": 2, "memory_kb": 255_000_000, "cmdline": "panic=10 quiet"}


def facts(**changed: Any) -> dict[str, Any]:
    return ALL | changed


@pytest.mark.parametrize(
    ("changed", "lacking"),
    [
        ({}, None),
        ({"nr_cpu": 8, "nr_node": 1}, "8 of 128 CPUs, 1 of 2 NUMA nodes"),
        ({"memory_kb": 130_000_000}, "126953 of 256000 MiB of memory"),
        ({"nr_cpu": 4, "cmdline": "maxcpus=4"}, None),
        ({"nr_cpu": 3, "cmdline": "maxcpus=4"}, "3 of 4 CPUs"),
        ({"nr_cpu": 64, "cmdline": "nosmt"}, None),
        ({"nr_cpu": 64, "cmdline": "nosmt=force"}, None),
        ({"nr_cpu": 64, "cmdline": "mds=full,nosmt"}, None),
        ({"nr_cpu": 64, "cmdline": "l1tf=full,force"}, None),
        ({"nr_cpu": 64, "cmdline": "mds=full"}, "64 of 128 CPUs"),
        ({"nr_cpu": 32, "cmdline": "nosmt"}, "32 of 64 CPUs"),
        ({"nr_node": 1, "cmdline": "numa=off"}, None),
        ({"memory_kb": 16_000_000, "cmdline": "mem=16G"}, None),
        ({"memory_kb": 120_000_000, "cmdline": "memmap=128G!4G"}, None),
        ({"nr_cpu": None, "nr_node": None, "memory_kb": None}, None),
        ({"nr_cpu": "many", "memory_kb": True}, None),
    ],
)
def test_fewer_than_the_file_states_and_the_command_line_asks_for(
    changed: dict[str, Any], lacking: str | None
) -> None:
    assert short_of(RACK, facts(**changed)) == lacking


def test_nodes_are_compared_only_where_the_file_states_them() -> None:
    assert short_of(replace(RACK, nr_node=None), facts(nr_node=1)) is None


@pytest.mark.parametrize("changed", [{"nr_cpu": 8}, {"nr_cpu": 4, "cmdline": "maxcpus=4"}])
def test_such_a_kernel_says_nothing_about_the_machine(changed: dict[str, Any]) -> None:
    seen = whole(RACK, facts(**changed, microcode="0x1"))
    assert seen["microcode"] == "0x1" and not {"nr_cpu", "memory_kb"} & seen.keys()
    assert whole(RACK, ALL) == ALL


def test_the_sentence_says_who_is_at_fault() -> None:
    said = {
        (anchor, before): invalid_reason(RACK, "8 of 128 CPUs", anchor=anchor, before=before)
        for anchor in (True, False)
        for before in (True, False)
    }
    assert said[True, True] == said[True, False]
    assert "so look at the machine" in said[True, False]
    assert "so this kernel or its configuration lacks them" in said[False, True]
    assert "no kernel has seen all" in said[False, False]
