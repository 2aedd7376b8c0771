"""What a killed mmdebstrap leaves mounted is neither seen by others nor removed with the
directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import made_root

ROOT = Path(__file__).resolve().parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


def test_mount_points_are_read_with_their_blanks() -> None:
    lines = [
        r"36 25 0:31 / /srv/a\040b/root/proc rw,relatime - proc proc rw",
        "37 25 0:32 / /srv/a rw shared:1 - tmpfs tmpfs rw",
        "38 25 0:33 / /srv/ab/root rw - tmpfs tmpfs rw",
    ]
    text = "\n".join(lines)
    assert made_root.mounted_below(Path("/srv/a b"), text) == [Path("/srv/a b/root/proc")]
    assert made_root.mounted_below(Path("/srv/a"), text) == [Path("/srv/a")]
    assert made_root.mounted_below(Path("/srv/a/b"), text) == []


@as_root
def test_nothing_is_removed_where_something_is_mounted(tmp_path: Path) -> None:
    """In a mount namespace of the test's own, so that it leaves nothing."""
    shm, kept = tmp_path / "made" / "root" / "dev" / "shm", tmp_path / "of-the-host"
    shm.mkdir(parents=True)
    kept.mkdir()
    (kept / "segment").touch()
    (tmp_path / "made" / "beside").touch()
    code = (
        f"from pathlib import Path; from tests.lab import made_root; "
        f"made_root.remove(Path({str(tmp_path / 'made')!r}))"
    )
    script = f'mount --bind "{kept}" "{shm}" || exit 77; exec "{sys.executable}" -c "$1"'
    done = subprocess.run(
        made_root.apart(["sh", "-c", script, "sh", code]),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if done.returncode == 77:
        pytest.skip(f"this host does not permit mounts: {done.stderr.strip()}")
    assert f"stays, for {shm} is mounted there" in done.stderr
    assert (kept / "segment").exists()
    assert (tmp_path / "made" / "beside").exists()
    made_root.remove(tmp_path / "made")
    assert not (tmp_path / "made").exists()
    made_root.remove(tmp_path / "made")


@as_root
def test_a_program_that_is_killed_takes_its_mounts_along(tmp_path: Path) -> None:
    script = f'mount -t tmpfs none "{tmp_path}" && : >"{tmp_path}/inside"; echo $?; exec sleep 600'
    with subprocess.Popen(
        made_root.apart(["sh", "-c", script]), stdout=subprocess.PIPE, text=True
    ) as making:
        assert making.stdout is not None
        status = making.stdout.readline()
        making.send_signal(signal.SIGKILL)
    if status != "0\n":
        pytest.skip("this host does not permit mounts")
    assert made_root.mounted_below(tmp_path, Path("/proc/self/mountinfo").read_text()) == []
    assert list(tmp_path.iterdir()) == []
