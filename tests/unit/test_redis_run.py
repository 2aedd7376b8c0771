"""The server that redis-benchmark measures is the one of the run."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.contract.labs import ROOT

PARAMETERS = "test=set requests=1 key_len=1 data_size=1 n_client=1 n_pipeline=1"


def test_another_server_on_the_port_is_not_measured(tmp_path: Path) -> None:
    said = "bind: Address already in use"
    for name, text in {
        "redis-server": f"echo '{said}'; exit 1",
        "redis-cli": "printf 'redis_version:7.0.15\\r\\nprocess_id:1\\r\\n'",
        "redis-benchmark": "echo measured",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["env", *PARAMETERS.split(), "sh", str(ROOT / "jobs" / "programs" / "redis" / "run")],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip() == f"redis-server did not start: {said}"
