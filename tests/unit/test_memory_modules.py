"""Memory modules from the SMBIOS table of a machine's firmware."""

from __future__ import annotations

import random

import pytest

from swingbot_worker.testbox.ssh.idle_system import answer
from swingbot_worker.testbox.ssh.memory_modules import MOST, described
from tests.smbios import END, memory_device, table

GIB = 1024


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ([], ""),
        ([memory_device(None)], "0 of 1 slots"),
        (
            [memory_device(32 * GIB)] * 8 + [memory_device(None)] * 8,
            "8 of 16 slots: 8 x 32 GiB at 2933 MT/s",
        ),
        (
            [memory_device(16 * GIB, 2666), memory_device(64 * GIB), memory_device(16 * GIB, 2666)],
            "3 of 3 slots: 2 x 16 GiB at 2666 MT/s + 1 x 64 GiB at 2933 MT/s",
        ),
        ([memory_device(512, 0)], "1 of 1 slots: 1 x 512 MiB"),
    ],
)
def test_slots_and_modules_are_counted(devices: list[bytes], said: str) -> None:
    report = answer(f"smbios={table(*devices).hex()}\n")
    assert report.dimms == said


def test_a_size_that_is_not_known_or_in_kilobytes_is_said() -> None:
    device = bytearray(memory_device(512, 0))
    device[0x0C:0x0E] = b"\xff\xff"
    assert described(table(bytes(device)).hex()) == "1 of 1 slots: 1 x module of unknown size"
    device[0x0C:0x0E] = (0x8000 | 512).to_bytes(2, "little")
    assert described(table(bytes(device)).hex()) == "1 of 1 slots: 1 x 0.5 MiB"


def test_a_damaged_table_is_read_as_far_as_it_goes() -> None:
    whole = table(memory_device(GIB), memory_device(GIB)).hex()
    assert described(whole[: -len(END.hex()) - 40]).startswith("1 of 1 slots")
    for wrong in ("", "1", "zz", "11" * 3, "1100" * 9, "00" * 4000):
        assert described(wrong) == ""
    draw = random.Random(5)
    for _ in range(2000):
        damaged = bytearray.fromhex(whole)
        for _ in range(4):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        described(damaged.hex())
    assert described(table(*[memory_device(GIB)] * (MOST + 5)).hex()).startswith(f"{MOST} of")
