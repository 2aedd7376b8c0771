"""`swingbot here` in a clone of a kernel tree measures the commit that was made there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from swingbot_worker.site import from_environment
from tests.demo.tree import patch_text
from tests.kernels import kernel_repository
from tests.patch_series import git

MINUTES = 60  # it waits for builds and boots of others on this host
pytestmark = pytest.mark.timeout((MINUTES + 5) * 60)


@pytest.fixture
def place() -> Iterator[Path]:
    """Not below pytest's directory: each pytest that starts closes it to the database's user."""
    with tempfile.TemporaryDirectory(prefix="swingbot-here-", dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_a_change_that_is_planted_in_a_clone_is_in_the_table(place: Path) -> None:
    repo, base = kernel_repository(from_environment())
    git(place, "clone", "-q", "--shared", "--no-checkout", str(repo), "clone")
    clone = place / "clone"
    git(clone, "checkout", "-q", "-b", "topic", base)
    message, diff = patch_text("gain-lru-batch")
    git(clone, "apply", "--index", "-", stdin=diff)
    git(clone, "-c", "user.name=Ada", "-c", "user.email=a@b", "commit", "-q", "-m", message)
    words = ("here", "HEAD^..HEAD", "--job", "vm-page-fault.yaml", "--yes")
    done = subprocess.run(
        [Path(sys.executable).parent / "swingbot", *words],
        cwd=clone,
        env={**os.environ, "XDG_STATE_HOME": str(place / "state")},
        capture_output=True,
        text=True,
        timeout=MINUTES * 60,
    )
    assert done.returncode == 0, done.stderr
    assert "in all at most" in done.stderr and "path length only" in done.stdout, done.stdout
    changed = re.search(r"^  HEAD +[0-9.]+ +[0-9.]+% +[+]([0-9.]+)%", done.stdout, re.M)
    assert changed is not None and float(changed[1]) > 2, done.stdout
    said = subprocess.run(
        [
            Path(sys.executable).parent / "swingbot",
            "--state",
            place / "state/swingbot-here",
            "status",
        ],
        capture_output=True,
        text=True,
    )
    assert said.returncode == 1 and "not running" in said.stderr, "the service ended with it"
