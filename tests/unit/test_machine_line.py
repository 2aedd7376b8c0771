"""The line of a report that says which machine was measured."""

from __future__ import annotations

from typing import Any

import pytest

from swingbot.core.report.parts.machine import machine_line

SERVER = {
    "cpu_model": "AMD EPYC 7302P 16-Core  Processor",
    "nr_cpu": 32,
    "nr_socket": 1,
    "threads_per_core": 2,
    "nr_node": 4,
    "memory_kb": 131_900_000,
    "microcode": "0x830107c",
    "governor": "performance",
    "turbo": "off",
}


@pytest.mark.parametrize(
    ("model", "facts", "line"),
    [
        (
            "Supermicro H11SSL-i",
            SERVER,
            "Supermicro H11SSL-i (AMD EPYC 7302P 16-Core Processor), 1 x 16 x 2 CPUs, 4 nodes,"
            " 126 GiB, microcode 0x830107c, governor performance, turbo off",
        ),
        ("amd epyc 7302p 16-core processor", {"cpu_model": SERVER["cpu_model"]}, None),
        ("", {"nr_cpu": 1, "nr_node": 1, "memory_kb": 524_288}, "1 CPU, 1 node, 0.5 GiB"),
        # a CPU is offline: no product of whole numbers
        ("m", {"nr_cpu": 31, "nr_socket": 1, "threads_per_core": 2}, "m, 31 CPUs"),
        ("", {"nr_cpu": True, "memory_kb": "all", "turbo": ""}, ""),
    ],
)
def test_what_is_known_of_the_machine_is_one_line(
    model: str, facts: dict[str, Any], line: str | None
) -> None:
    assert machine_line(model, facts) == (model if line is None else line)
