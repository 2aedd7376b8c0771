"""Results of a server over its serial line: the guest's own script prints them, ours reads them."""

from __future__ import annotations

import gzip
import lzma
import random
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from swingbot_jobs.reading import snapshots
from swingbot_worker.runner.prologue import PROLOGUE
from swingbot_worker.testbox.ssh import console_rate, guest, packer
from swingbot_worker.testbox.ssh.console_log import results
from tests.fakes.server_counters import ServerCounters, results_of

MOST: Final = 256 << 20
SHELLS: Final = (["dash"], ["busybox", "sh"])


def function(text: str, name: str) -> str:
    """Return one function of a script."""
    found = re.search(rf"^{name}\(\) {{$.*?^}}$", text, re.M | re.S)
    assert found is not None
    return found[0]


def printed(content: bytes, folder: Path) -> str:
    """Return what the init of a testbox prints on its console."""
    [init] = [
        entry.content.decode()
        for entry in guest.entries("t", "s", "console", None, 22)
        if entry.path == guest.INIT
    ]
    (folder / "ssh/packer").mkdir(parents=True)
    (folder / "out").mkdir()
    for entry in packer.entries(folder / "cache"):
        (folder / entry.path).write_bytes(entry.content)
        (folder / entry.path).chmod(0o755)
    (folder / "out/results.tar").write_bytes(content)
    script = function(init, "over_console").replace("/dev/console", "/out/console")
    script = re.sub(r"/(out|ssh)/", rf"{folder}/\1/", script)
    subprocess.run(["busybox", "sh", "-c", f"sleep() {{ :; }}\n{script}\nover_console"], check=True)
    return (folder / "out/console").read_text()


def compact(text: str, shell: list[str], folder: Path) -> str:
    """Return what the runner's script prints of a file of counters."""
    (folder / "counters").write_text(text)
    (folder / "cpu1").mkdir(exist_ok=True)
    script = f"sb_cpus={folder}\n{function(PROLOGUE, 'compact')}\ncompact {folder}/counters"
    return subprocess.run([*shell, "-c", script], capture_output=True, text=True, check=True).stdout


def test_a_snapshot_that_repeats_costs_the_serial_line_a_third(tmp_path: Path) -> None:
    content = results_of(ServerCounters(), 12)
    text = printed(content, tmp_path)
    assert results(text, MOST) == content
    lines = int(text.removeprefix("SB+").partition(":")[0])
    assert lines * 57 < len(gzip.compress(content)) / 2.5


def test_results_of_more_than_a_hundred_thousand_lines_arrive(tmp_path: Path) -> None:
    content = random.Random(3).randbytes(100_500 * 57)
    text = printed(content, tmp_path)
    assert text.startswith("SB+1005")
    assert results(text, MOST) == content


def test_a_packed_file_that_unpacks_to_more_than_allowed_is_refused(tmp_path: Path) -> None:
    assert results(printed(bytes(1 << 20), tmp_path), (1 << 20) - 1) is None


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_counters_that_are_0_on_every_cpu_are_folded_and_read_as_before(
    shell: list[str], tmp_path: Path
) -> None:
    server = ServerCounters(cpus=16, interrupts=40)
    for name, read in (("interrupts", snapshots.interrupts), ("softirqs", snapshots.softirqs)):
        text = server.files()[name]
        short = compact(text, shell, tmp_path)
        assert read(short.splitlines()) == read(text.splitlines())
        never = [line for line in text.splitlines() if re.match(r"[ \w]+:(?: +0){16}(?: |$)", line)]
        assert short.count("0*") == len(never) > 2


def test_the_first_interrupt_of_a_run_is_counted_although_its_line_was_folded() -> None:
    before = snapshots.interrupts([" CPU0 CPU1", "NMI: 0*  Non-maskable interrupts"])
    after = snapshots.interrupts([" CPU0 CPU1", "NMI: 0 7  Non-maskable interrupts"])
    assert snapshots.grown_on_all_cpus([before, after]) == {"NMI:Non-maskable_interrupts": 7.0}


def test_a_folded_line_without_cpus_is_no_counter() -> None:
    assert snapshots.interrupts(["NMI: 0*  Non-maskable interrupts"]) == {}


def test_the_forecast_of_a_run_is_that_of_its_snapshots() -> None:
    server, shown = ServerCounters(), []
    for _ in range(4):
        shown.append("".join(server.files().values()))
        server.go_on()
    each = console_rate.run_bytes(shown)
    packed = len(lzma.compress(results_of(ServerCounters(), 12)))
    assert 0.7 * packed / 12 < each < 1.4 * packed / 12
    # 115200 baud: 10 bits a byte
    assert 80 < console_rate.sending_seconds(100 * each, 11_520.0) < 400
