"""`make conformance` without Ruby, or without one of its libraries: a reason for each line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conformance.parsers import PAIRS
from tests.conformance.ruby import LIBRARIES

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "install Debian's ruby ruby-activesupport ruby-git ruby-tty-command"


def conformance(lkp_src: Path, programs: Path) -> tuple[int, list[str], str]:
    """Exit status, lines and errors of the comparison, where `programs` is all of PATH."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.conformance"],
        cwd=ROOT,
        env=os.environ | {"LKP_SRC": str(lkp_src), "PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ended.returncode, ended.stdout.splitlines(), ended.stderr


def checkout(place: Path) -> Path:
    """What the comparison takes for a checkout of lkp-tests."""
    (place / "lkp" / "sbin").mkdir(parents=True)
    (place / "lkp" / "sbin" / "split-job").touch()
    return place / "lkp"


def test_without_ruby_each_line_says_what_to_install(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    status, lines, errors = conformance(checkout(tmp_path), programs)
    *rows, last = lines
    assert (status, errors) == (2, ""), "nothing was compared, and nothing is a traceback"
    assert len(rows) == 2 + len(PAIRS) and last.startswith("0 compared in ")
    assert all(row.endswith(f"Ruby is not installed; {INSTALL}") for row in rows), rows


def test_a_ruby_without_a_library_is_named_with_it(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    ruby = programs / "ruby"
    ruby.write_text("#!/bin/sh\ncase $2 in *tty-command*) exit 1 ;; esac\n")
    ruby.chmod(0o755)
    status, lines, errors = conformance(checkout(tmp_path), programs)
    assert (status, errors) == (2, "")
    assert all(line.endswith(f"Ruby lacks tty-command; {INSTALL}") for line in lines[:-1]), lines
    assert set(INSTALL.split()[3:]) == {*LIBRARIES.values()}


def test_a_directory_that_is_not_a_checkout_is_refused(tmp_path: Path) -> None:
    status, lines, errors = conformance(tmp_path, tmp_path)
    assert (status, lines) == (2, [])
    assert errors == (
        f"LKP_SRC={tmp_path}: name the directory of an lkp-tests checkout (it has "
        "sbin/split-job): make conformance LKP_SRC=~/lkp-tests\n"
    )
