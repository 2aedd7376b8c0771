"""The benchmarks and monitors of the tree, read once for all tests of a process."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from swingbot_jobs.language.program import load_programs

JOBS: Final = Path(__file__).resolve().parents[1] / "jobs"
PROGRAMS: Final = load_programs(JOBS / "programs")
