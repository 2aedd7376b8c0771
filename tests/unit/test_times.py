"""Times of test files are kept, and the longest begins first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.times import Cost, of_junit, slowest, table

ROOT = Path(__file__).resolve().parents[2]
TEST = """
import time
def test_it():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
"""
CONFTEST = """
from tests.times import Times
def pytest_configure(config):
    config.pluginmanager.register(Times(config))
"""


def test_a_run_begins_with_the_file_that_took_longest_and_keeps_its_times(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(TEST)
    kept = tmp_path / "build" / "times" / "x.xml"
    kept.parent.mkdir(parents=True)
    kept.write_text('<testsuites><testcase classname="test_b" time="9" /></testsuites>')
    argv = [sys.executable, "-m", "pytest", "-v", "-n", "1", "--dist", "loadfile"]
    argv += ["--no-loadscope-reorder", f"--junitxml={kept}", "-p", "no:cacheprovider"]
    env = {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True).stdout
    passed = [line for line in said.splitlines() if "PASSED" in line]
    assert ["test_b.py" in line for line in passed] == [True, False], said
    assert any("s cpu  test_b.py" in line for line in said.splitlines()), said
    costs = of_junit(kept)
    assert {file for file, _ in slowest(costs)} == {"test_a.py", "test_b.py"}
    assert 0.2 < costs["test_b.py"].cpu < 60


def test_a_file_of_a_killed_run_is_no_times(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text("<testsuites><testcase")
    assert of_junit(tmp_path / "x.xml") == {}


def test_the_table_has_what_takes_a_second_or_more() -> None:
    assert table({"a.py": Cost(0.9, 0.1), "b.py": Cost(2.4, 1.6)}) == "2\t2\tb.py\n"
