"""huge-pages, with a /proc/vmstat of the test's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "jobs/programs/huge-pages"
MAIN = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
/* as /proc gives it: a page at a time */
static ssize_t page(int fd, void *to, size_t bytes)
{
	return read(fd, to, bytes < 4088 ? bytes : 4088);
}
#define read page
#define open(name, ...) open("vmstat", __VA_ARGS__)
#define fopen(name, mode) fopen("vmstat", mode)
#define main unused
#include "huge-pages.c"
#undef main
int main(void)
{
	return printf("%lu", moved()) < 0;
}
"""


def test_moved_pages_are_found_behind_the_first_page_of_vmstat(tmp_path: Path) -> None:
    """A counter that is not found counts as 0, and the run has no migrate_time."""
    counters = [f"nr_of_another_kernel_{i} 12345678" for i in range(200)]
    counters += ["numa_pgmigrate_success 1", "pgmigrate_success 4711", "pgmigrate_fail 2"]
    (tmp_path / "vmstat").write_text("\n".join(counters) + "\n")
    (tmp_path / "main.c").write_text(MAIN)
    build = ["gcc", "-D_GNU_SOURCE", "-I", str(PROGRAM), "-I", str(PROGRAM.parent), "main.c"]
    subprocess.run([*build, "-o", "moved"], cwd=tmp_path, check=True, timeout=120)
    said = subprocess.run(["./moved"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert said.stdout == b"4711"
