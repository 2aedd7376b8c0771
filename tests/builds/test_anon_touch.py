"""anon-touch, with a clock of the test's own, and its sources in a kit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from swingbot.app.reproduction import program_sources

SOURCE = Path(__file__).resolve().parents[2] / "jobs/programs/anon-touch/anon-touch.c"
CLOCK = """
#include <time.h>
static int slow(clockid_t id, struct timespec *t)
{
	static time_t now;

	(void)id;
	t->tv_sec = now += 5;
	t->tv_nsec = 0;
	return 0;
}
#define clock_gettime slow
"""


def test_an_access_of_five_seconds_is_not_one_of_a_fraction(tmp_path: Path) -> None:
    """Durations are kept in 32 bits of nanoseconds; the clock goes on by 5 s at each look."""
    clock, binary = tmp_path / "clock.h", tmp_path / "anon-touch"
    clock.write_text(CLOCK)
    build = ["gcc", "-D_GNU_SOURCE", "-include", str(clock), "-I", str(SOURCE.parents[1])]
    build += [str(SOURCE), "-o", str(binary)]
    subprocess.run(build, check=True, timeout=120)
    run = [str(binary), "40960", "2", "seq", "same"]
    said = subprocess.run(run, check=True, capture_output=True, text=True, timeout=60).stdout
    durations = re.findall(r"p\d\d_ns=(\d+)", said)
    assert len(durations) == 4 and set(durations) == {str(2**32 - 1)}


def test_the_sources_that_a_kit_has_compile_where_they_are_unpacked(tmp_path: Path) -> None:
    for name, content in program_sources(SOURCE.parent).items():
        (tmp_path / name).write_bytes(content)
    subprocess.run(
        ["gcc", "-o", "anon-touch", "anon-touch.c"], cwd=tmp_path, check=True, timeout=120
    )
