"""Start the executor as a detached process, which survives the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Marks the processes of an embedded service. An executor is not one of them, because it may survive
# the service.
INSTANCE_VARIABLE = "SWINGBOT_INSTANCE"


def start_executor(place: Path, lock: int, log: Path) -> None:
    """Start `python -m swingbot_worker.executor` in its own session.

    It inherits the descriptor `lock` and so the lock.
    """
    environment = {name: value for name, value in os.environ.items() if name != INSTANCE_VARIABLE}
    with log.open("ab") as sink:
        subprocess.Popen(
            [sys.executable, "-m", "swingbot_worker.executor", str(place), str(lock)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=environment | {"PYTHONUNBUFFERED": "1"},
            pass_fds=(lock,),
            start_new_session=True,
        )
